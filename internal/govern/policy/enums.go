package policy

import (
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/permission"
)

// An Effect is what a decision says. The zero value refuses.
type Effect uint8

const (
	Deny Effect = iota
	Ask
	Allow
)

var effectNames = [...]string{"deny", "ask", "allow"}

func (e Effect) String() string { return nameOf(effectNames[:], int(e), "deny") }

// MarshalText writes the word for the effect.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// A Class says what sort of effect a call has. The zero value is unknown and
// is refused.
type Class uint8

const (
	ClassUnknown Class = iota
	Meta               // asks, finds, finishes; changes nothing outside the conversation
	Read               // looks at files
	Write              // makes or replaces files
	Edit               // changes files in part; a kind of Write
	Exec               // starts a process
	Network            // reaches beyond this machine, or its effect is unknown
	classes
)

var classNames = [...]string{"unknown", "meta", "read", "write", "edit", "exec", "network"}

func (c Class) String() string { return nameOf(classNames[:], int(c), "unknown") }

func (c Class) known() bool { return c > ClassUnknown && c < classes }

// An Intent is what a model says it is about to do. The zero value is none.
type Intent uint8

const (
	NoIntent Intent = iota
	Plan
	Code
	Analyze
	Debug
	WriteFile
	ReadFile
	Execute
	intents
)

var intentNames = [...]string{"", "PLAN", "CODE", "ANALYZE", "DEBUG", "WRITE_FILE", "READ_FILE", "EXECUTE"}

func (i Intent) String() string { return nameOf(intentNames[:], int(i), "") }

// ParseIntent reads the name of an intent; the empty text is [NoIntent].
func ParseIntent(s string) (Intent, bool) {
	i := indexOf(intentNames[:], s)
	return Intent(max(i, 0)), i >= 0
}

// Intents lists the names of the seven intents, in the order in which the
// select_active_intent tool offers them.
func Intents() []string { return append([]string(nil), intentNames[1:]...) }

// IntentPolicy says whether a model must declare an intent. The zero value is
// strict.
type IntentPolicy uint8

const (
	Strict  IntentPolicy = iota
	Relaxed              // reads run under an implied READ_FILE
	Off
)

var intentPolicyNames = [...]string{"strict", "relaxed", "off"}

func (p IntentPolicy) String() string { return nameOf(intentPolicyNames[:], int(p), "strict") }

// A Surface is where a call comes in. The zero value is unnamed and treated
// like chat.
type Surface string

const (
	SurfaceChat    Surface = "chat"
	SurfaceRun     Surface = "run" // ken run
	SurfaceAPI     Surface = "api"
	SurfaceMCP     Surface = "mcp"
	SurfaceLibrary Surface = "library"
)

var surfaceNames = [...]string{"chat", "run", "api", "mcp", "library"}

// A Deployment says who can reach this Ken. The zero value is the strictest.
type Deployment uint8

const (
	RemoteExposed Deployment = iota
	LocalLocked
	LocalOpen
)

var deploymentNames = [...]string{"remote_exposed", "local_locked", "local_open"}

func (d Deployment) String() string { return nameOf(deploymentNames[:], int(d), "remote_exposed") }

// A Profile is a readable set of defaults. The zero value is locked.
type Profile uint8

const (
	Locked Profile = iota
	Team
	Personal
	Seed
)

var profileNames = [...]string{"locked", "team", "personal", "seed"}

func (p Profile) String() string { return nameOf(profileNames[:], int(p), "locked") }

// ParseProfile reads the name of a profile.
func ParseProfile(s string) (Profile, bool) {
	i := indexOf(profileNames[:], s)
	return Profile(max(i, 0)), i >= 0
}

// A Scope says how far one answer of a person reaches. The zero value is the
// narrowest.
type Scope uint8

const (
	Once    Scope = iota // this call, by its digest, and no other
	Session              // the same capability and action for the rest of the session, or longer
)

var scopeNames = [...]string{"once", "session"}

func (s Scope) String() string { return nameOf(scopeNames[:], int(s), "once") }

// MarshalText writes the word for the scope.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// The words that settings use, each list in the order of its constants.

// EffectWords lists the words for effects.
func EffectWords() []string { return slices.Clone(effectNames[:]) }

// ClassWords lists the words for classes, from [Meta] on.
func ClassWords() []string { return slices.Clone(classNames[Meta:]) }

// IntentPolicyWords lists the words for intent policies.
func IntentPolicyWords() []string { return slices.Clone(intentPolicyNames[:]) }

// SurfaceWords lists the words for surfaces.
func SurfaceWords() []string { return slices.Clone(surfaceNames[:]) }

// DeploymentWords lists the words for deployments.
func DeploymentWords() []string { return slices.Clone(deploymentNames[:]) }

// ProfileWords lists the words for profiles.
func ProfileWords() []string { return slices.Clone(profileNames[:]) }

// ScopeWords lists the words for scopes.
func ScopeWords() []string { return slices.Clone(scopeNames[:]) }

// AccessModeWords lists the words for access modes.
func AccessModeWords() []string { return slices.Clone(accessNames[:]) }

// GroupWords lists the words for groups of tools.
func GroupWords() []string { return slices.Clone(groupNames) }

// PermissionWords lists the words for permissions, without aliases.
func PermissionWords() []string { return permission.Names() }

func nameOf(names []string, i int, other string) string {
	if i < len(names) {
		return names[i]
	}
	return other
}

func indexOf(names []string, s string) int {
	for i, n := range names {
		if n == s {
			return i
		}
	}
	return -1
}

// builtinTools returns the class of the tools that Ken itself or a seed names.
// Only a capability of this program is judged by its name: anybody may call
// theirs read_file.
func builtinClass(name string) Class {
	if capability.IsOwnTool(name) {
		return Meta
	}
	switch name {
	case "attempt_completion", "ask_followup_question", "update_todo_list", "switch_mode", "new_task":
		return Meta
	case "read_file", "list_files", "search_files":
		return Read
	case "write_to_file":
		return Write
	case "apply_diff":
		return Edit
	case "run_command", "execute_command", "shell":
		return Exec
	}
	return ClassUnknown
}

// ToolName returns the one name by which rules know a tool that has several.
func ToolName(name string) string {
	switch name {
	case "run_command", "execute_command":
		return "shell"
	case capability.ToolList:
		return capability.ToolDiscover
	}
	return name
}

// A Permission is one thing that a capability may be allowed to do.
type Permission uint8

const (
	PermExec Permission = 1 << iota
	PermNetwork
	PermRead
	PermWrite
	PermBrowser
	PermLLM
)

var permissionNames = permission.Names() // the bits of Permission, in order

// Permissions is a set of permissions. Its zero value is empty. A word that
// names none is remembered and makes every decision about the set a refusal.
type Permissions struct {
	set     Permission
	unknown string
}

// Permit makes a set of permissions.
func Permit(list ...Permission) Permissions {
	var p Permissions
	for _, one := range list {
		p.set |= one
	}
	return p
}

// ParsePermissions reads the names of permissions, the seed's and the aliases
// that its program uses.
func ParsePermissions(names []string) Permissions {
	var p Permissions
	for _, name := range names {
		one, ok := ParsePermission(name)
		if !ok && p.unknown == "" {
			p.unknown = name
			if name == "" {
				p.unknown = `""`
			}
		}
		p.set |= one
	}
	return p
}

// ParsePermission reads the name of a permission, or an alias of it.
func ParsePermission(name string) (Permission, bool) {
	i := permission.Find(name)
	if i < 0 {
		return 0, false
	}
	return 1 << i, true
}

// Has reports whether every permission of one is in the set.
func (p Permissions) Has(one Permission) bool { return p.set&one == one }

// Unknown returns the first word that named no permission, or "".
func (p Permissions) Unknown() string { return p.unknown }

// Names lists the permissions in the seed's order.
func (p Permissions) Names() []string {
	var names []string
	for i, name := range permissionNames {
		if p.set&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return names
}

func (p Permissions) String() string { return strings.Join(p.Names(), ", ") }

// judgedAs returns the origin that rules see: a page of a server has the authority
// of a model.
func judgedAs(c capability.Caller) capability.Caller {
	if c == capability.ByApp {
		return capability.ByModel
	}
	return c
}

func originName(c capability.Caller) string {
	if c == capability.ByPerson {
		return "person"
	}
	return "model"
}
