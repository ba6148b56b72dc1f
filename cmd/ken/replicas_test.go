//go:build unix

package main_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ken/internal/store"
	"ken/internal/testkit"
	"ken/internal/testkit/objectstoretest"
	"ken/internal/testkit/storetest"
)

// newReplicas starts servers with a home each, and one PostgreSQL. settings are those of
// all, instead of policy.intents: off.
func newReplicas(t *testing.T, n int, address string, settings ...string) []*replica {
	t.Helper()
	first := newKen(t)
	out := make([]*replica, n)
	more := "policy: {intents: \"off\"}\n"
	if len(settings) > 0 {
		more = strings.Join(settings, "")
	}
	for i := range out {
		k := &house{binary: first.binary, home: t.TempDir(), work: first.work} // as containers have the same folder
		for name, text := range map[string]string{
			filepath.Join(k.home, "ken.yaml"): fmt.Sprintf("store: %q\n%s", address, more),
			filepath.Join(k.work, "note.txt"): "hello\n",
		} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		out[i] = &replica{house: k, server: k.serve(t)}
	}
	return out
}

type replica struct {
	*house
	*server
}

// ask makes a request with a token and returns its status and its body.
func (s *server) ask(t *testing.T, method, path, token string, body any, headers ...string) (int, []byte) {
	t.Helper()
	status, text, err := requestTo(t.Context(), method, s.url+path, token, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return status, text
}

type invoked struct {
	Session, Code, Detail, Rule, Ticket string
	Result                              struct {
		Parts  []struct{ Text string }
		Handle string
		Failed bool
		Meta   map[string]string
	}
	Asked struct{ Ticket string }
}

// invoke makes a call and returns the status and what came of it.
func (s *server) invoke(t *testing.T, token, session, target string, args map[string]any, more ...string) (int, invoked) {
	t.Helper()
	body := map[string]any{"session": session, "target": target, "arguments": args}
	for i := 0; i+1 < len(more); i += 2 {
		body[more[i]] = more[i+1]
	}
	status, text := s.ask(t, http.MethodPost, "/api/v1/invoke", token, body)
	var out invoked
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("invoke: %v\n%s", err, text)
	}
	return status, out
}

// TestRoundTrips counts how often two replicas wait for PostgreSQL together for one call
// that one of them makes. A call without an approval does not wait at all. If a person
// approves the call on the other replica, the question, the answer and the call wait at
// most six times. Only trips about approvals, keys and results are counted,
// because the replicas also ask for other things by themselves.
func TestRoundTrips(t *testing.T) {
	testkit.CI(t, "starts replicas")
	wire := storetest.NewWire(t, storetest.Postgres(t), "approval/", "effect/", "result/", "result-text/")
	r := newReplicas(t, 2, wire.Address)
	a, b := r[0], r[1]
	note, env, echo := map[string]any{"path": "note.txt"}, map[string]any{"path": ".env"}, map[string]any{"cmd": "echo hi"}
	if err := os.WriteFile(filepath.Join(a.work, ".env"), []byte("KEY=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	plain := func(int) {
		if status, got := a.invoke(t, a.token, "trips", "tool:read_file", note); status != http.StatusOK {
			t.Fatalf("read: %d %+v", status, got)
		}
	}
	approved := func(target string, args map[string]any, keyed bool) func(int) {
		return func(i int) {
			var key []string
			if keyed {
				key = []string{"key", fmt.Sprint("k", i)}
			}
			_, asked := a.invoke(t, a.token, "trips", target, args, key...)
			b.grant(t, asked.ticket())
			if status, got := a.invoke(t, a.token, "trips", target, args, key...); status != http.StatusOK {
				t.Fatalf("%s: %d %+v", target, status, got)
			}
		}
	}
	trips := func(name string, wire *storetest.Wire, do func(int), most float64) {
		t.Helper()
		const calls = 30
		for i := range 3 { // statements are prepared
			do(1000 + i)
		}
		before, all := wire.About(), wire.Trips()
		for i := range calls {
			do(i)
		}
		got := float64(wire.About()-before) / calls
		t.Logf("a call %s waits %.1f times for PostgreSQL; with what the replicas ask by themselves meanwhile, %.1f times", name, got, float64(wire.Trips()-all)/calls)
		if got > most+0.3 { // the end of the call before may come late
			t.Errorf("a call %s waits %.1f times for PostgreSQL, want at most %.0f", name, got, most)
		}
	}
	for _, tt := range []struct {
		name string
		do   func(int)
		most float64
	}{
		{"without approval", plain, 0},
		{"with its question and answer", approved("tool:read_file", env, false), 6},
		{"of a command with its question and answer", approved("tool:shell", echo, false), 6},
		{"of a command with a key, its question and its answer", approved("tool:shell", echo, true), 6},
	} {
		trips(tt.name, wire, tt.do, tt.most)
	}

	// With limits of calls for all replicas together, what renews the shares is counted too.
	wire = storetest.NewWire(t, storetest.Postgres(t), "approval/", "effect/", "result/", "result-text/", "quota/")
	r = newReplicas(t, 2, wire.Address, "policy: {intents: \"off\"}\nlimits: {perPrincipal: 8, perTenant: 16}\nserve: {rate: {requests: 0}}\n")
	a, b = r[0], r[1]
	if err := os.WriteFile(filepath.Join(a.work, ".env"), []byte("KEY=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	trips("without approval, with limits", wire, plain, 3)
	trips("with its question and answer, and limits", wire, approved("tool:read_file", env, false), 6)
}

// TestStoreAway: while PostgreSQL is away a replica denies and says why, and it works again
// when PostgreSQL does. A slow server and one that went back in time are named.
func TestStoreAway(t *testing.T) {
	testkit.CI(t, "starts replicas")
	address := storetest.Postgres(t)
	wire := storetest.NewWire(t, address)
	s := newReplicas(t, 1, wire.Address)[0]
	note := map[string]any{"path": "note.txt"}
	works := func() bool {
		status, _ := s.invoke(t, s.token, "away", "tool:read_file", note)
		return status == http.StatusOK
	}
	doctor := func(want string) {
		t.Helper()
		out, err := s.command("doctor", "--cluster").CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("ken doctor --cluster: %v, want %q in\n%s", err, want, out)
		}
	}
	if !works() {
		t.Fatal("a call does not work")
	}
	wire.Down()
	if !testkit.Until(func() bool { return !works() }) {
		t.Error("a replica without PostgreSQL allows calls")
	}
	status, got := s.invoke(t, s.token, "away", "tool:read_file", note)
	if status == http.StatusOK || !strings.Contains(got.Detail, "shared settings") && !strings.Contains(got.Detail, "configuration") && !strings.Contains(got.Detail, "cannot reach the store") {
		t.Errorf("a call without PostgreSQL: %d %+v", status, got)
	}
	wire.Up()
	testkit.Wait(t, "calls work again", works)
	wire.Slow(1100 * time.Millisecond)
	doctor("the store is slow")
	wire.Slow(0)

	conn, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	// Far enough back that the calls below do not make up for it.
	set := func(version string) {
		if _, err := conn.Exec(t.Context(), "UPDATE ken_head SET version = "+version); err != nil {
			t.Fatal(err)
		}
	}
	set("version + 1000000")
	<-time.After(2 * time.Second) // it asks twice a second
	testkit.Wait(t, "calls work while PostgreSQL goes on", works)
	set("1")
	if !testkit.Until(func() bool { return !works() }) {
		t.Error("calls are allowed although PostgreSQL went back in time")
	}
	doctor("put back to an earlier state")
}

// TestReplicas has two servers on two machines, as far as they know, and one
// PostgreSQL: what is done on one holds on the other.
func TestReplicas(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	address := storetest.Postgres(t)
	r := newReplicas(t, 2, address)
	a, b := r[0], r[1]
	note := map[string]any{"path": "note.txt"}

	t.Run("tokens", func(t *testing.T) {
		for _, token := range []string{a.token, b.token} {
			for _, s := range r {
				if status, text := s.ask(t, http.MethodGet, "/api/v1/me", token, nil); status != http.StatusOK {
					t.Errorf("a token of one replica on another: %d %s", status, text)
				}
			}
		}
		out, err := a.command("token", "add", "bot").Output()
		if err != nil {
			t.Fatal(err)
		}
		bot := strings.TrimSpace(string(out))
		if !testkit.Until(func() bool {
			status, _ := b.ask(t, http.MethodGet, "/api/v1/me", bot, nil)
			return status == http.StatusOK
		}) {
			t.Error("the token of an agent is never taken by the other replica")
		}
		if out, err := b.command("token", "rm", "bot").CombinedOutput(); err != nil {
			t.Fatalf("remove a token where its file is not: %v\n%s", err, out)
		}
		for _, s := range r {
			if !testkit.Until(func() bool {
				status, _ := s.ask(t, http.MethodGet, "/api/v1/me", bot, nil)
				return status != http.StatusOK
			}) {
				t.Error("a token that was removed is still taken")
			}
		}
	})

	t.Run("sign-in and sign-out", func(t *testing.T) {
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		_, page := a.page(t)
		resp, err := client.Get(b.url + "/?" + page)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(resp.Cookies()) != 1 {
			t.Fatalf("the link of one replica on another: %s", resp.Status)
		}
		cookie := resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
		for _, s := range r {
			if status, text := s.ask(t, http.MethodGet, "/api/v1/me", "", nil, "Cookie", cookie, "Sec-Fetch-Site", "same-origin"); status != http.StatusOK {
				t.Errorf("a browser that is signed in: %d %s", status, text)
			}
		}
		if status, text := a.ask(t, http.MethodPost, "/auth/logout", "", nil, "Cookie", cookie, "Sec-Fetch-Site", "same-origin", "Origin", a.url); status != http.StatusNoContent {
			t.Fatalf("sign out: %d %s", status, text)
		}
		if !testkit.Until(func() bool {
			status, _ := b.ask(t, http.MethodGet, "/api/v1/me", "", nil, "Cookie", cookie, "Sec-Fetch-Site", "same-origin")
			return status != http.StatusOK
		}) {
			t.Error("who signed out on one replica is signed in on the other")
		}
	})

	t.Run("results", func(t *testing.T) {
		if err := os.WriteFile(filepath.Join(a.work, "long.txt"), []byte(strings.Repeat("a line of a long file\n", 20_000)), 0o600); err != nil {
			t.Fatal(err)
		}
		status, made := a.invoke(t, a.token, "results", "tool:read_file", map[string]any{"path": "long.txt"})
		if status != http.StatusOK || made.Result.Handle == "" {
			t.Fatalf("a long result: %d %+v", status, made)
		}
		status, text := b.ask(t, http.MethodGet, "/api/v1/results/"+made.Result.Handle+"?session=results", b.token, nil)
		if status != http.StatusOK || !bytes.Contains(text, []byte("a line of a long file")) {
			t.Errorf("a result that was made on the other replica: %d %.200s", status, text)
		}
	})

	t.Run("approvals", func(t *testing.T) {
		env := map[string]any{"path": ".env"}
		for _, s := range r {
			if err := os.WriteFile(filepath.Join(s.work, ".env"), []byte("KEY=1\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		status, asked := a.invoke(t, a.token, "approvals", "tool:read_file", env)
		ticket := asked.ticket()
		if ticket == "" {
			t.Fatalf("reading .env needs no approval: %d %+v", status, asked)
		}
		b.grant(t, ticket)
		if status, got := a.invoke(t, a.token, "approvals", "tool:read_file", env); status != http.StatusOK {
			t.Errorf("after the other replica granted it: %d %+v", status, got)
		}
		if status, _ := b.invoke(t, b.token, "approvals", "tool:read_file", env); status == http.StatusOK {
			t.Error("a grant for one call was used on both replicas")
		}
	})

	t.Run("keys", func(t *testing.T) {
		write := map[string]any{"cmd": "echo once"}
		_, asked := a.invoke(t, a.token, "keys", "tool:shell", write, "key", "k1")
		b.grant(t, asked.ticket())
		_, one := a.invoke(t, a.token, "keys", "tool:shell", write, "key", "k1")
		status, two := b.invoke(t, b.token, "keys", "tool:shell", write, "key", "k1")
		if status != http.StatusOK { // the first has answered and may still hold the key
			t.Logf("the other replica: %d %+v", status, two)
			testkit.Until(func() bool {
				status, two = b.invoke(t, b.token, "keys", "tool:shell", write, "key", "k1")
				return status == http.StatusOK
			})
		}
		if one.Result.Meta["effect"] == "" || one.Result.Meta["effect"] != two.Result.Meta["effect"] || two.Result.Meta["repeated"] == "" {
			t.Errorf("a call with a key on both replicas: %v, then %v; want one effect", one.Result.Meta, two.Result.Meta)
		}
	})

	t.Run("audit on one replica", func(t *testing.T) {
		tail := a.command("audit", "tail", "-f", "-n", "0", "--session", "tailed", "--json")
		out, err := tail.StdoutPipe()
		if err == nil {
			err = tail.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		lines := make(chan string, 1000)
		go func() {
			defer close(lines)
			for in := bufio.NewScanner(out); in.Scan(); {
				lines <- in.Text()
			}
		}()
		defer func() {
			_ = tail.Process.Kill()
			for range lines {
			}
			_ = tail.Wait()
		}()
		// It follows from when it has started, which it does not say.
		if !testkit.Until(func() bool {
			b.invoke(t, b.token, "tailed", "tool:read_file", note)
			select {
			case line := <-lines:
				return strings.Contains(line, "tailed")
			case <-time.After(500 * time.Millisecond):
				return false
			}
		}) {
			t.Error("ken audit tail -f never has a record of the other replica")
		}
		for _, s := range r {
			s.invoke(t, s.token, "listed", "tool:read_file", note)
		}
		for _, s := range r {
			if !testkit.Until(func() bool {
				status, text := s.ask(t, http.MethodGet, "/api/v1/audit?session=listed&event=capability_executed", s.token, nil)
				return status == http.StatusOK && bytes.Count(text, []byte(`"event":"capability_executed"`)) == 2
			}) {
				t.Error("the list of one replica never has the records of both")
			}
		}
	})

	t.Run("audit", func(t *testing.T) {
		for _, s := range r {
			s.invoke(t, s.token, "audit", "tool:read_file", note)
		}
		type record struct{ Event, Session_ID string }
		if !testkit.Until(func() bool {
			var doc struct{ Records []record }
			a.json(t, &doc, "audit", "query", "--session", "audit", "--event", "capability_executed")
			return len(doc.Records) == 2
		}) {
			t.Error("ken audit query never has the records of both replicas")
		}
		a.verify(t)
		b.verify(t)
		// One chain in the store ends too early.
		db, err := store.Open(t.Context(), address, "")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		home, err := os.ReadFile(filepath.Join(b.home, "state", "replica"))
		if err != nil {
			t.Fatal(err)
		}
		cut := ""
		for item, err := range db.Scan(t.Context(), "auditlog/text/"+strings.TrimSpace(string(home))+"/", store.Range{}) {
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(item.Key, fmt.Sprintf("-%d-", b.cmd.Process.Pid)) && cut == "" {
				cut = strings.Split(strings.Split(item.Key, "/")[3], ".")[0]
				var batch store.Batch
				batch.Put(item.Key, item.Value[:len(item.Value)-10])
				if _, err := db.Apply(t.Context(), &batch); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := os.RemoveAll(filepath.Join(a.home, "cache", "audit")); err != nil {
			t.Fatal(err)
		}
		out, err := a.command("audit", "verify").CombinedOutput()
		if err == nil || !strings.Contains(string(out), cut+"@") {
			t.Errorf("a chain of another replica ends too early: %v\n%s", err, out)
		}
	})

	t.Run("doctor", func(t *testing.T) {
		out, err := a.command("doctor", "--cluster").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "2 replicas run") {
			t.Errorf("ken doctor --cluster: %v\n%s", err, out)
		}
		file := filepath.Join(b.home, "ken.yaml")
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, append(text, "# another file\n"...), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if !testkit.Until(func() bool {
			out, err = a.command("doctor", "--cluster").CombinedOutput()
			return err != nil && strings.Contains(string(out), "ken.yaml is not the same on all replicas")
		}) {
			t.Errorf("ken doctor --cluster with different files: %v\n%s", err, out)
		}
	})

	t.Run("rules", func(t *testing.T) {
		const changes = 6
		allowed := func(s *replica) bool {
			status, got := s.invoke(t, s.token, "rules", "tool:read_file", note)
			if status != http.StatusOK && status != http.StatusNotFound && status != http.StatusForbidden {
				t.Errorf("a call while rules change: %d %+v", status, got)
			}
			return status == http.StatusOK
		}
		for i := range changes {
			on := i%2 == 1
			out, err := r[i%2].command("config", "set", "--shared", "policy.toolAccess", fmt.Sprintf("{tools: {read_file: {enabled: %v}}}", on)).CombinedOutput()
			if err != nil {
				t.Fatalf("share a rule: %v\n%s", err, out)
			}
			for _, s := range r {
				if !testkit.Until(func() bool { return allowed(s) == on }) {
					t.Fatalf("a rule never reached a replica\n%s", s.stderr.String())
				}
			}
		}
	})
}

// TestResultsInBucket has two servers that keep long results in an S3-compatible store:
// what was made on one can be read on the other. Without the keys the error says so.
func TestResultsInBucket(t *testing.T) {
	testkit.Nightly(t, "several replicas")
	address := storetest.Postgres(t)
	bucket := objectstoretest.New(t)
	c := &chaos{t: t, all: newReplicas(t, 2, address)}
	settings := fmt.Sprintf("results: {bucket: %q}\npolicy: {intents: \"off\"}\n", bucket.Address)
	start := func(env ...string) {
		for i, r := range c.all {
			r.configure(t, settings, address)
			r.house.env = append(env, "SHELL_TOOL_ALLOWED_PREFIXES=cat")
			c.kill(i)
		}
	}
	long := map[string]any{"cmd": "cat long.txt"}
	if err := os.WriteFile(filepath.Join(c.all[0].work, "long.txt"), []byte(strings.Repeat("a line of a long file\n", 20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	start()
	_, asked := c.all[0].invoke(t, c.all[0].token, "bucket", "tool:shell", long)
	if status, text := c.all[0].ask(t, http.MethodPost, "/api/v1/approvals/"+asked.ticket(), c.all[0].token, map[string]any{"effect": "grant", "scope": "session", "covers": "tool"}); status != http.StatusOK {
		t.Fatalf("allow: %d %s", status, text)
	}
	if status, got := c.all[0].invoke(t, c.all[0].token, "bucket", "tool:shell", long); got.Result.Handle != "" || len(bucket.Keys()) != 0 {
		t.Errorf("a long result without keys: %d %.500s", status, fmt.Sprint(got))
	}
	without := c.all[0].server
	start("AWS_ACCESS_KEY_ID="+objectstoretest.ID, "AWS_SECRET_ACCESS_KEY="+objectstoretest.Secret)
	if text := without.stderr.String(); !strings.Contains(text, "AWS_ACCESS_KEY_ID") { // it has ended
		t.Errorf("the log does not name the keys that are missing:\n%s", text)
	}
	a, b := c.all[0], c.all[1]
	status, made := a.invoke(t, a.token, "bucket", "tool:shell", long)
	if status != http.StatusOK || made.Result.Handle == "" || len(bucket.Keys()) != 1 {
		t.Fatalf("a long result: %d %.500s, objects %q\n%s", status, fmt.Sprint(made), bucket.Keys(), a.server.stderr.String())
	}
	status, text := b.ask(t, http.MethodGet, "/api/v1/results/"+made.Result.Handle+"?session=bucket", b.token, nil)
	if status != http.StatusOK || !bytes.Contains(text, []byte("a line of a long file")) {
		t.Errorf("a result that was made on the other replica: %d %.200s", status, text)
	}
}

// grant allows a call once.
func (s *server) grant(t *testing.T, ticket string) {
	t.Helper()
	if status, text := s.ask(t, http.MethodPost, "/api/v1/approvals/"+ticket, s.token, map[string]any{"effect": "grant", "scope": "once"}); status != http.StatusOK {
		t.Fatalf("grant %s: %d %s", ticket, status, text)
	}
}

// ticket returns the ticket of a call that waits for an approval.
func (i invoked) ticket() string {
	if i.Ticket != "" {
		return i.Ticket
	}
	return i.Asked.Ticket
}

// page returns the page's address, and the part with the token.
func (s *server) page(t *testing.T) (string, string) {
	t.Helper()
	_, query, ok := strings.Cut(s.link, "?")
	if !ok {
		t.Fatalf("the server's link is %q", s.link)
	}
	return s.link, query
}
