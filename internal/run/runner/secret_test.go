package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"testing"

	"ken/capability"
	"ken/internal/govern/audit"
	"ken/internal/govern/policy"
)

const deployToken = "deploy-4711-token-long"

func knowing() *audit.Redactor {
	r := &audit.Redactor{}
	r.HoldNamed(maps.All(map[string]string{"DEPLOY_TOKEN": deployToken}))
	return r
}

// TestSecretInArguments: a known secret goes only to capabilities that were given it.
func TestSecretInArguments(t *testing.T) {
	with := func(c capability.Capability) capability.Capability { return c }
	tests := []struct {
		name, args string
		answer     string
		declare    func(capability.Capability) capability.Capability
		given      []string
		send       map[string][]string
		want       bool // denied
	}{
		{"as it is", `{"text":"x deploy-4711-token-long y"}`, "", with, nil, nil, true},
		{"escaped", `{"text":"\u0064eploy\u002d4711-token-long"}`, "", with, nil, nil, true},
		{"for an address", `{"text":"?a=%64eploy-4711%2dtoken-long"}`, "", with, nil, nil, true},
		{"a percent sign alone", `{"text":"100% of 5%zz"}`, "", with, nil, nil, false},
		{"nothing of it", `{"text":"deploy 4711 token long"}`, "", with, nil, nil, false},
		{"in an answer", `{"text":"x"}`, `{"action":"accept","content":{"token":"deploy-4711-token-long"}}`, with, nil, nil, true},
		{"in metadata", `{"text":"x"}`, "", with, nil, nil, true},
		{"required", `{"text":"deploy-4711-token-long"}`, "", func(c capability.Capability) capability.Capability {
			c.RequiredSecrets = []string{"DEPLOY_TOKEN"}
			return c
		}, nil, nil, false},
		{"another required", `{"text":"deploy-4711-token-long"}`, "", func(c capability.Capability) capability.Capability {
			c.RequiredSecrets = []string{"OTHER"}
			return c
		}, nil, nil, true},
		{"given by the executor", `{"text":"deploy-4711-token-long"}`, "", with, []string{"DEPLOY_TOKEN"}, nil, false},
		{"sent by a setting", `{"text":"deploy-4711-token-long"}`, "", with, nil, map[string][]string{"DEPLOY_TOKEN": {"tool:l*"}}, false},
		{"sent to others", `{"text":"deploy-4711-token-long"}`, "", with, nil, map[string][]string{"DEPLOY_TOKEN": {"tool:write"}}, true},
		{"sent to an id that is not the user's own", `{"text":"deploy-4711-token-long"}`, "", func(c capability.Capability) capability.Capability {
			c.Trust = capability.TrustWorkspace
			return c
		}, nil, map[string][]string{"DEPLOY_TOKEN": {"tool:look"}}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ran := false
			x := tool{
				facts: func(capability.Call) (Facts, error) { return Facts{Secrets: tt.given}, nil },
				invoke: func(ctx context.Context, c capability.Call) (capability.Result, error) {
					ran = true
					return echo(ctx, c)
				},
			}
			s := policy.Defaults(policy.Personal)
			s.Intents, s.SendSecrets = policy.Off, tt.send
			look := tt.declare(*testCapabilities()["tool:look"])
			r := newRig(t, x, func(c *Config) {
				c.Redactor, c.Rules = knowing(), compiled(t, s)
				c.Resolve = func(context.Context, capability.Call) (Resolved, error) {
					return Resolved{Capability: &look, Extension: "ext"}, nil
				}
			})
			call := callOf("look", tt.args)
			if tt.name == "in metadata" {
				call.Meta = json.RawMessage(`{"token":"deploy-4711-token-long"}`)
			}
			if tt.answer != "" {
				call.Answers = map[string]json.RawMessage{"q": json.RawMessage(tt.answer)}
			}
			res, err := r.Invoke(t.Context(), call)
			if !tt.want {
				if err != nil || !ran {
					t.Errorf("Invoke() = %v, ran %v; want it to run", err, ran)
				}
				return
			}
			e := wantKind(t, err, capability.Denied)
			if ran || e.Rule != "arguments.knownSecret" || !strings.Contains(err.Error(), "DEPLOY_TOKEN") || !strings.Contains(err.Error(), "changed by policy.sendSecrets") {
				t.Errorf("Invoke() = %v, ran %v; want a denial that names the secret and the setting", err, ran)
			}
			if text := fmt.Sprint(res, err, r.log.last(t)); strings.Contains(text, deployToken) {
				t.Errorf("the denial has the secret: %s", text)
			}
		})
	}
}

// liveText is what a caller sees while a call runs.
type liveText struct {
	strings.Builder
	stderr strings.Builder
	notes  strings.Builder
}

func (l *liveText) Stderr() io.Writer { return &l.stderr }

func (l *liveText) Progress(_, _ float64, message string) { l.notes.WriteString(message) }

func (l *liveText) Note(_, _ string, data json.RawMessage) { l.notes.Write(data) }

// TestSecretsNowhere: what a call writes while it runs, its error, its questions
// and what is noted about it are as clean as its result. What only looks like a secret
// stays.
func TestSecretsNowhere(t *testing.T) {
	x := tool{invoke: func(_ context.Context, c capability.Call) (capability.Result, error) {
		if c.Target == "tool:write" {
			return capability.Result{Parts: []capability.Part{
				{Text: "token=" + deployToken + " and password=plain-word"}, {JSON: json.RawMessage(`{"a":"` + deployToken + `"}`)}, {JSON: json.RawMessage(`{"b":1}`)},
				{Data: []byte("\xff" + deployToken), MIME: "image/png"}, {Link: "https://x.test/?k=" + deployToken},
			}}, nil
		}
		out := c.Live.(capability.Streams)
		io.WriteString(out, "it is deploy-47")
		io.WriteString(out, "11-token-long.\nand dep")
		io.WriteString(out.Stderr(), deployToken)
		report := c.Live.(capability.Reporter)
		report.Progress(1, 2, "at "+deployToken)
		report.Note("info", "x", json.RawMessage(`{"a":"`+deployToken+`"}`))
		return capability.Result{Meta: map[string]string{"line": "run " + deployToken}}, &capability.Error{
			Kind: capability.InputNeeded, Op: "call", Target: "x " + deployToken, Fix: "not " + deployToken,
			Err: errors.Join(errors.New("said "+deployToken), &capability.Inquiry{Requests: map[string]json.RawMessage{"q": json.RawMessage(`{"message":"` + deployToken + `"}`)}}),
		}
	}}
	r := newRig(t, x, func(c *Config) { c.Redactor = knowing() })
	clean := succeeds(t, r, callOf("write", `{"text":"a"}`))
	if all, _ := json.Marshal(clean); strings.Contains(string(all)+string(clean.Parts[3].Data), deployToken) ||
		!strings.Contains(clean.Parts[0].Text, "plain-word") || string(clean.Parts[2].JSON) != `{"b":1}` || !json.Valid(clean.Parts[1].JSON) {
		t.Errorf("the result has the secret, or lost something else: %s", all)
	}
	live := &liveText{}
	call := callOf("look", `{"text":"a"}`)
	call.Live = live
	res, err := r.Invoke(t.Context(), call)
	wantKind(t, err, capability.InputNeeded)
	q, ok := errors.AsType[*capability.Inquiry](err)
	if !ok || string(q.Requests["q"]) != `{"message":"[redacted]"}` {
		t.Fatalf("Invoke() = %v, want the question, redacted", err)
	}
	raw, _ := json.Marshal(res)
	for name, text := range map[string]string{
		"output": live.String(), "stderr": live.stderr.String(), "notes": live.notes.String(), "error": err.Error(), "result": string(raw),
	} {
		if strings.Contains(text, deployToken) || !strings.Contains(text, "[redacted]") {
			t.Errorf("%s: %s, want it without the secret", name, text)
		}
	}
	if live.String() != "it is [redacted].\nand dep" || live.notes.String() != `at [redacted]{"a":"[redacted]"}` {
		t.Errorf("output %q, notes %q: something else was lost", live.String(), live.notes.String())
	}
}
