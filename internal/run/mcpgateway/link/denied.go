package link

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"ken/capability"
	"ken/internal/untrusted"
)

// A denial says why a server's question is not passed on.
type denial struct{ rule, why string }

// The rules by which questions are denied.
const (
	RuleSecrets  = "mcp.elicitation.secrets" // a form that asks for a password or a key
	RuleContext  = "mcp.sampling.context"    // sampling with the context of other servers
	RuleSampling = "permissions.llm"         // sampling where models may not be used
)

// denied reports whether a question must not be passed on. The protocol forbids
// servers to ask for secrets in a form, because they would reach the client and
// the server; the context of other servers does not belong to this one; and
// sampling uses a model.
func (l *Link) denied(method string, params json.RawMessage) (denial, bool) {
	switch method {
	case "elicitation/create":
		if name := secretField(params); name != "" {
			return denial{RuleSecrets, "the form asks for a secret: " + untrusted.Line(name, 60)}, true
		}
	case "sampling/createMessage":
		var p struct {
			IncludeContext string `json:"includeContext"`
		}
		_ = json.Unmarshal(params, &p) // the client reports invalid parameters
		switch {
		case l.cfg.DenySampling != nil && l.cfg.DenySampling():
			return denial{RuleSampling, "sampling uses a model"}, true
		case p.IncludeContext == "allServers":
			return denial{RuleContext, "it asks for the context of all servers"}, true
		}
	}
	return denial{}, false
}

func (d denial) Error() string { return fmt.Sprintf("denied by rule %s: %s", d.rule, d.why) }

// wire is the error that the server gets.
func (d denial) wire() error {
	return &jsonrpc.Error{Code: -1, Message: d.Error()}
}

// call is the error that the caller gets if the question came as a result.
func (d denial) call(l *Link, r request) error {
	return &capability.Error{
		Kind: capability.Denied, Op: r.op, Target: l.target(r), Rule: d.rule, Err: errors.New("the server's question is denied: " + d.why),
		Fix: map[string]string{
			RuleSecrets:  "give the server its secrets by its env or by a page of its own",
			RuleContext:  "tell its author to ask for thisServer or none",
			RuleSampling: "change policy.permissions.llm",
		}[d.rule],
	}
}

// secretField returns the member of a form that asks for a secret, or "".
func secretField(params json.RawMessage) string {
	var p struct {
		Mode   string `json:"mode"`
		Schema struct {
			Properties map[string]struct {
				Title  string `json:"title"`
				Format string `json:"format"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	}
	if json.Unmarshal(params, &p) != nil || p.Mode == "url" {
		return ""
	}
	for name, field := range p.Schema.Properties {
		if field.Format == "password" || secretWord(name) || secretWord(field.Title) {
			return name
		}
	}
	return ""
}

// secretWord reports whether the name of a field says that it is a secret.
func secretWord(name string) bool {
	plain := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == ' ' || r == '.' {
			return -1
		}
		return r
	}, strings.ToLower(name))
	for _, word := range []string{"password", "passwd", "passphrase", "passcode", "secretkey", "clientsecret", "apikey", "accesstoken", "authtoken", "bearertoken", "privatekey", "seedphrase", "creditcard", "cardnumber", "cvv"} {
		if strings.Contains(plain, word) {
			return true
		}
	}
	return plain == "secret" || plain == "token" || plain == "pin" || plain == "otp"
}
