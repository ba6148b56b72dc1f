//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"ken/internal/testkit"
)

// shellOpen lets a person allow any command of the tool shell.
const shellOpen = "policy: {intents: \"off\", toolAccess: {tools: {shell: {mode: full}}}}\n"

// newChaos has servers on one PostgreSQL, and a command that writes a word to a file,
// which a person has allowed for the session.
func newChaos(t *testing.T, servers int, address string) *chaos {
	t.Helper()
	c := &chaos{t: t, all: newReplicas(t, servers, address), effects: "effects.txt"}
	for _, r := range c.all {
		r.configure(t, shellOpen, address)
	}
	c.allow()
	return c
}

// doctor waits until ken doctor --cluster finds a problem and names it.
func (r *replica) doctor(t *testing.T, want string) {
	t.Helper()
	var out []byte
	if !testkit.Until(func() bool {
		out, _ = r.command("doctor", "--cluster").CombinedOutput()
		return strings.Contains(string(out), want)
	}) {
		t.Errorf("ken doctor --cluster never says %q:\n%s", want, out)
	}
}

// refused makes new calls until one is refused, and returns the error. Each call has a
// word of its own that begins with a prefix.
func (c *chaos) refused(prefix string) invoked {
	c.t.Helper()
	n := 0
	var got invoked
	if !testkit.Until(func() bool {
		n++
		word := fmt.Sprint(prefix, n)
		status, answer, err := c.call(c.t.Context(), c.pick(n), word)
		if err == nil && status == http.StatusOK {
			c.acknowledged.Store(word, answer.Result.Meta["effect"])
			c.done.Add(1)
			return false
		}
		got = answer
		return err == nil
	}) {
		c.t.Errorf("calls %s… are never refused", prefix)
	}
	return got
}

// works waits until a call is acknowledged on each server.
func (c *chaos) works(word string) {
	c.t.Helper()
	for i := range c.all {
		var last string
		word := fmt.Sprintf("%s-%d", word, i)
		if !testkit.Until(func() bool {
			status, got, err := c.call(c.t.Context(), c.pick(i), word)
			last = fmt.Sprintf("%d %+v %v", status, got, err)
			if ok := err == nil && status == http.StatusOK; ok {
				c.acknowledged.Store(word, got.Result.Meta["effect"])
				c.done.Add(1)
			}
			return err == nil && (status == http.StatusOK || got.Rule == "effect.unknown")
		}) {
			c.t.Fatalf("call %s never works: %s\n%s", word, last, c.pick(i).stderr.String())
		}
	}
}

func names(t *testing.T, got invoked, want ...string) {
	t.Helper()
	text := got.Detail + " " + got.Rule
	for _, w := range want {
		if strings.Contains(text, w) {
			return
		}
	}
	t.Errorf("the error %+v names none of %q", got, want)
}

// fillDisk writes a file until its disk has no room.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 64<<10)
	for err == nil {
		_, err = f.Write(block)
	}
	for small := block[:512]; ; {
		if _, err = f.Write(small); err != nil {
			return
		}
	}
}
