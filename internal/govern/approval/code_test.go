package approval_test

import (
	"strings"
	"testing"
	"time"

	"ken/capability"
	"ken/internal/govern/approval"
	"ken/internal/govern/policy"
	"ken/internal/testkit"
)

// A started is a call that starts a program, as the runner makes it.
type started struct {
	call  capability.Call
	argv  []string
	files []policy.File
}

func startOf(digest string, argv ...string) started {
	call := callOf(`{"cmd":"` + strings.Join(argv, " ") + `"}`)
	call.Code = digest
	return started{call, argv, []policy.File{{Name: argv[0], Path: "/usr/bin/" + argv[0], SHA256: digest}}}
}

func (j started) question() approval.Question {
	q := about(j.call)
	q.Argv, q.Files = j.argv, j.files
	q.Prefix = policy.CommonPrefix(&policy.Facts{Commands: [][]string{j.argv}}, j.files)
	return q
}

// covered reports whether the grants of a desk cover it.
func (j started) covered(t *testing.T, d *approval.Desk, now time.Time) bool {
	t.Helper()
	rules := testkit.Must(policy.Compile(policy.Defaults(policy.Personal)))(t)
	q := requestOf(t, j.call)
	q.Capability = policy.Capability{
		ID: j.call.Target, Name: "git", Kind: capability.KindTool, Trust: capability.TrustUser, Class: policy.Exec, Hash: j.call.CapabilityHash,
		Declared: policy.Permit(policy.PermExec), Required: policy.Permit(policy.PermExec),
	}
	q.Facts, q.Files, q.Exact = policy.Facts{Commands: [][]string{j.argv}}, j.files, approval.Exact(j.call)
	q.Surface, q.Time = policy.SurfaceMCP, now
	q.Grants = testkit.Must(d.Grants(ctx, q))(t)
	return rules.Decide(q).Effect == policy.Allow
}

// TestGrantCoversTheBytes: a grant of any scope ends for a call whose program
// has changed, and the next question says so.
func TestGrantCoversTheBytes(t *testing.T) {
	for _, a := range []approval.Answer{
		yes(approval.Once), yes(approval.Session), yes(approval.Always),
		{By: ann, Effect: approval.Yes, Scope: approval.Always}, // the exact call
		{By: ann, Effect: approval.Yes, Scope: approval.Session, Covers: approval.CoverPrefix},
	} {
		d, c := fresh(t)
		good, evil := startOf("aa", "git", "status"), startOf("bb", "git", "status")
		settle(t, d, ask(t, d, good.question()).ID, a)
		if !good.covered(t, d, c.Now()) {
			t.Errorf("%s %s: the approved call is not covered", a.Scope, a.Covers)
		}
		if evil.covered(t, d, c.Now()) {
			t.Errorf("%s %s: other bytes are covered", a.Scope, a.Covers)
		}
		moved := good
		moved.files = []policy.File{{Name: "git", Path: "/tmp/git", SHA256: "aa"}}
		moved.call.Code = "cc"
		if moved.covered(t, d, c.Now()) {
			t.Errorf("%s %s: another program of the same name is covered", a.Scope, a.Covers)
		}
		ticket := ask(t, d, evil.question())
		if ticket.State != approval.Pending || len(ticket.Voided) != 1 || !strings.Contains(ticket.Voided[0].Why, "the program /usr/bin/git has changed since ann approved it") {
			t.Errorf("%s %s: asked again: %s, %+v", a.Scope, a.Covers, ticket.State, ticket.Voided)
		}
	}
}

// TestReplacedWhilePending: an answer is for the bytes that were shown.
func TestReplacedWhilePending(t *testing.T) {
	d, c := fresh(t)
	good, evil := startOf("aa", "git", "status"), startOf("bb", "git", "status")
	first, second := ask(t, d, good.question()), ask(t, d, evil.question())
	if first.ID == second.ID {
		t.Fatal("one question for different bytes")
	}
	settle(t, d, first.ID, yes(approval.Session))
	if evil.covered(t, d, c.Now()) {
		t.Error("bytes that nobody approved are covered")
	}
	wantState(t, "the other question", d, second.ID, approval.Pending)
}

// TestGrantsAreAsWideAsTheySay: a grant covers the exact call, calls with the
// same prefix, or the tool, for its time and no longer.
func TestGrantsAreAsWideAsTheySay(t *testing.T) {
	status, short, push, list := startOf("aa", "git", "status"), startOf("aa", "git", "status", "-s"), startOf("aa", "git", "push"), startOf("dd", "ls", "/")
	elsewhere := status
	elsewhere.call.Session = "s9"
	hazard := startOf("aa", "git", "status", "--exec-path=/tmp")
	tests := []struct {
		scope  approval.Scope
		covers approval.Cover
		yes    []started
		no     []started
	}{
		{approval.Session, approval.CoverCall, []started{status}, []started{short, push, list, elsewhere}},
		{approval.Always, approval.CoverCall, []started{status, elsewhere}, []started{short, push, list}},
		{approval.Always, "", []started{status, elsewhere}, []started{short, push, list}},
		{approval.Session, approval.CoverPrefix, []started{status, short}, []started{push, list, elsewhere, hazard}},
		{approval.Always, approval.CoverPrefix, []started{status, short, elsewhere}, []started{push, list, hazard}},
		{approval.Session, approval.CoverTool, []started{status, short, push, list}, []started{elsewhere}},
		{approval.Session, "", []started{status, short, push, list}, []started{elsewhere}},
		{approval.Always, approval.CoverTool, []started{status, short, push, list, elsewhere}, nil},
	}
	for _, test := range tests {
		d, c := fresh(t)
		ticket := ask(t, d, status.question())
		settle(t, d, ticket.ID, approval.Answer{By: ann, Effect: approval.Yes, Scope: test.scope, Covers: test.covers})
		for _, j := range test.yes {
			if !j.covered(t, d, c.Now()) {
				t.Errorf("%s %s: %v in %s is not covered", test.scope, test.covers, j.argv, j.call.Session)
			}
		}
		for _, j := range test.no {
			if j.covered(t, d, c.Now()) {
				t.Errorf("%s %s: %v in %s is covered", test.scope, test.covers, j.argv, j.call.Session)
			}
		}
		held, err := d.Held(ctx, approval.Filter{Tenant: "acme"})
		if err != nil || len(held) != 1 || held[0].Until.IsZero() {
			t.Fatalf("%s %s: Held = %+v, %v; want one that ends", test.scope, test.covers, held, err)
		}
		c.advance(31 * 24 * time.Hour)
		if status.covered(t, d, c.Now()) {
			t.Errorf("%s %s: it holds after 31 days", test.scope, test.covers)
		}
	}
}

// TestOffers: the desk offers what may be granted, the narrowest first, and
// accepts nothing else.
func TestOffers(t *testing.T) {
	d, _ := fresh(t)
	ticket := ask(t, d, startOf("aa", "git", "status").question())
	var got []string
	for _, o := range ticket.Offers {
		got = append(got, string(o.Scope)+" "+string(o.Covers)+": "+o.Text)
		if !strings.HasPrefix(o.Text, o.Calls+", ") {
			t.Errorf("%s %s: Text = %q, want Calls %q and then the time", o.Scope, o.Covers, o.Text, o.Calls)
		}
	}
	want := `once call: this call, once
session call: this exact call, in this session
always call: this exact call, in every session, for 30 days
session prefix: commands that begin with git status, in this session
always prefix: commands that begin with git status, in every session, for 30 days
session tool: every call of tool:git push with any arguments, in this session
always tool: every call of tool:git push with any arguments, in every session, for 30 days`
	if strings.Join(got, "\n") != want {
		t.Errorf("Offers =\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	python := startOf("aa", "python3", "-c", "print(1)")
	ticket = ask(t, d, python.question())
	for _, o := range ticket.Offers {
		if o.Covers == approval.CoverPrefix {
			t.Errorf("a prefix of an interpreter is offered: %s", o.Text)
		}
	}
	if _, err := d.Settle(ctx, ticket.ID, approval.Answer{By: ann, Effect: approval.Yes, Scope: approval.Always, Covers: approval.CoverPrefix}); capability.KindOf(err) != capability.Invalid {
		t.Errorf("a prefix that is not offered: %v", err)
	}
}

// TestPrefixCoversItsFiles: a command with the same beginning that runs another
// file, because it starts in another folder, is not covered, and is not settled
// along.
func TestPrefixCoversItsFiles(t *testing.T) {
	d, c := fresh(t)
	in := func(dir string, argv ...string) started {
		j := startOf("d1", argv...)
		j.call.Code = "code of " + dir
		j.files = []policy.File{{Name: "/bin/sh", Path: "/bin/sh", SHA256: "d0"}, {Name: dir + "/build.sh", Path: dir + "/build.sh", SHA256: "digest in " + dir}}
		return j
	}
	here, there := in("/ws", "./build.sh"), in("/ws/sub", "./build.sh")
	first := ask(t, d, here.question())
	other := ask(t, d, there.question())
	settle(t, d, first.ID, approval.Answer{By: ann, Effect: approval.Yes, Scope: approval.Always, Covers: approval.CoverPrefix})
	if more := in("/ws", "./build.sh", "more"); !here.covered(t, d, c.Now()) || !more.covered(t, d, c.Now()) {
		t.Error("the approved command is not covered")
	}
	if there.covered(t, d, c.Now()) {
		t.Error("a script in another folder is covered")
	}
	if again := ask(t, d, there.question()); again.ID != other.ID || again.State != approval.Pending {
		t.Errorf("the other command's request, asked again: %+v", again)
	}
}
