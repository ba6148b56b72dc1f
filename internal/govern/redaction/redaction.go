// Package redaction keeps the audit log's redactor up to date with the secrets
// that Ken knows.
package redaction

import (
	"fmt"
	"strings"
	"sync/atomic"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/secret"
)

// A Redactor is an [audit.Redactor] that holds the values of a store of secrets.
// It is safe for concurrent use.
type Redactor struct {
	*audit.Redactor
	Secrets *secret.Store

	held atomic.Uint64 // Changes of Secrets when their values were last held, plus one
}

// New returns a Redactor. It holds nothing before the first
// Update.
func New(s *secret.Store) *Redactor {
	return &Redactor{Redactor: &audit.Redactor{}, Secrets: s}
}

// Update holds every secret that is there now. It is cheap if there are no new
// ones.
func (r *Redactor) Update() {
	now := r.Secrets.Changes() + 1 // never zero
	if r.held.Load() == now {
		return
	}
	r.HoldNamed(func(yield func(name, value string) bool) {
		for name, v := range r.Secrets.Values() {
			// The name of an environment variable only suggests that it is a secret.
			// A short value, such as a user name, would deny calls without need.
			plain, variable := strings.CutPrefix(name, "env:")
			if variable && len(v.Reveal()) < audit.NamedAnywhere {
				plain = ""
			}
			if !yield(plain, v.Reveal()) {
				return
			}
		}
	})
	r.held.Store(now)
}

// HoldTokens holds tokens of ken serve.
func (r *Redactor) HoldTokens(values []secret.Value) {
	r.HoldNamed(func(yield func(name, value string) bool) {
		for _, v := range values {
			if !yield("token of ken serve", v.Reveal()) {
				return
			}
		}
	})
}

// Redact returns a text without secrets, after an Update.
func (r *Redactor) Redact(s string) string {
	r.Update()
	return r.String(s)
}

// Lookup returns the value of an environment variable or secret, and holds it.
func (r *Redactor) Lookup(name string) (string, bool) {
	v, err := r.Secrets.Lookup(name)
	if err != nil {
		return "", false
	}
	r.Update()
	return v.Reveal(), true
}

// Resolve returns the value that a reference stands for, and holds it.
func (r *Redactor) Resolve(reference string) (string, error) {
	v, err := r.Secrets.Resolve(reference)
	if err != nil {
		return "", err
	}
	r.Update()
	return v.Reveal(), nil
}

// Check returns an error with the kind Denied if one of the texts contains a
// secret. It is for requests that are not calls, which the rules do not judge.
func (r *Redactor) Check(op, target string, texts ...string) error {
	r.Update()
	for _, text := range texts {
		if names := r.Named(text); len(names) > 0 {
			return &capability.Error{
				Kind: capability.Denied, Op: op, Target: target, Rule: "arguments.knownSecret",
				Err: fmt.Errorf("the request contains the secret %s", names[0]), Fix: "remove the value",
			}
		}
	}
	return nil
}
