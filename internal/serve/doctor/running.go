package doctor

import (
	"fmt"
	"strings"
)

// Running is what the doctor knows about carrying calls out.
type Running struct {
	Isolation Isolation
	Profile   string // of the rules
	ShellFull bool   // the tool shell runs any command
	Store     string // where state is kept
	StoreErr  error
	Audit     string // the folder of the audit log
	AuditErr  error  // why nothing can be recorded in it, or nil
	SecretErr error
	Waiting   int      // calls that wait for a person
	New       []string // extensions that were not reviewed, or that changed since
}

// Isolation is what holds a program here.
type Isolation struct {
	Profile  string   // full, landlock or none
	Require  string   // what sandbox.require wants
	Missing  []string // "layer: why"
	Escaped  []string // what a canary managed to do under it
	Attempts int
	Refuses  string // why programs do not run at all, or ""
}

func running(r Running) []Check {
	checks := []Check{
		isolation(r.Isolation),
		{Name: "rules", Grade: Good, Message: "the profile " + r.Profile + "; ken policy show prints them"},
		{Name: "state", Grade: Good, Message: r.Store},
	}
	if r.StoreErr != nil {
		checks[2] = Check{Name: "state", Grade: Bad, Message: r.StoreErr.Error(), Fix: "until this is fixed no call can be made"}
	}
	if r.ShellFull {
		checks = append(checks, Check{
			Name: "shell", Grade: Good, Note: true, Message: "the tool shell is in the mode full: a model may run any command in the sandbox, with your approval",
			Fix: "the mode allowlist, in tool-access.json or policy.toolAccess, limits it to commands that you list",
		})
	}
	if r.Audit != "" {
		checks = append(checks, auditLog(r))
	}
	if r.SecretErr != nil {
		checks = append(checks, Check{Name: "secrets", Grade: Bad, Message: r.SecretErr.Error(), Fix: "until this is fixed only secrets in the environment can be used"})
	}
	if r.Waiting > 0 {
		checks = append(checks, Check{Name: "approvals", Grade: Warn, Message: count(r.Waiting, "call") + " waiting for approval", Fix: "see ken approve list"})
	}
	if len(r.New) > 0 {
		checks = append(checks, Check{
			Name: "extensions", Grade: Warn, Message: "off until reviewed: " + strings.Join(r.New, ", "),
			Fix: "see ken extension review " + r.New[0],
		})
	}
	return checks
}

func auditLog(r Running) Check {
	if r.AuditErr != nil {
		return Check{Name: "audit log", Grade: Bad, Message: r.AuditErr.Error(), Fix: "make the folder writable for this user, with space left; until this is fixed no call can be made"}
	}
	return Check{Name: "audit log", Grade: Good, Message: r.Audit}
}

func isolation(i Isolation) Check {
	c := Check{Name: "isolation", Grade: Good}
	c.Message = fmt.Sprintf("programs run under the sandbox profile %s; %s to escape failed", i.Profile, count(i.Attempts, "attempt"))
	switch {
	case i.Refuses != "":
		c.Grade, c.Message, c.Fix = Bad, i.Refuses, "no program runs here until this is fixed, or sandbox.require asks for less"
	case i.Profile == "none":
		c.Grade, c.Message = Warn, "programs have no sandbox: resource limits alone apply"
		c.Fix = "programs can read and change what this user can; sandbox.require: require-landlock denies such runs"
	case len(i.Escaped) > 0:
		c.Grade, c.Message = Bad, "attempts to escape from the sandbox profile "+i.Profile+" succeeded: "+strings.Join(i.Escaped, ", ")
		c.Fix = "set sandbox.require to another profile, and report this"
	case i.Profile != "full":
		c.Grade = Warn
		c.Fix = "names and attributes of other files stay visible to programs"
	}
	if len(i.Missing) > 0 {
		c.Message += "; missing " + strings.Join(i.Missing, "; ")
	}
	return c
}
