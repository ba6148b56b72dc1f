// Package systemapi serves what concerns Ken as a whole: whether it is well,
// who asks, the settings, the doctor, what was saved, prices, and the numbers
// that Prometheus reads.
package systemapi

import (
	"context"
	"net/http"
	"time"

	"ken/internal/door"
	"ken/internal/find/outcome"
	"ken/internal/secret"
	"ken/internal/serve/auth"
	"ken/internal/serve/doctor"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/setup"
	"ken/internal/talk/demo"
	"ken/internal/talk/opener"
)

// Config says what to serve. All functions must be safe for concurrent use.
// Where one is nil its route answers that there is none, but for those that say
// otherwise.
type Config struct {
	// What [Me] tells everybody.
	Version, Workspace, Tokenizer string

	Profile func() string                    // of the rules; nil: ""
	Model   func() (name string, window int) // nil, and an empty name: none is configured
	Modes   func() []string                  // nil: none
	Intents func() []string                  // nil: none

	// Fault says in one line why nothing may be called now, and empty where that
	// is not so: with what is wrong where for an operator. Nil: never.
	Fault func(operator bool) string

	// Demo is what the model of the demo knows. Nil: this is not the demo.
	Demo []demo.Request

	// View returns what a caller sees of the catalog. Stats are of all of it: for
	// health checks.
	View  func(auth.Identity) door.View
	Stats func() door.Stats

	// Ready are the conditions under which requests are of use.
	Ready []Probe

	// Settings lists what is set. Nothing secret may be in it. Set changes one
	// that is writable; Restart says that a change applies only after a
	// restart.
	Settings func() []Setting
	Set      func(ctx context.Context, who auth.Identity, key, value string) (Changed, error)
	Check    func(key, value string) error // what is wrong with a value; nothing is changed

	// Reset removes a writable setting from the file, so that its default applies.
	Reset func(ctx context.Context, who auth.Identity, key string) (Changed, error)

	Doctor func(context.Context) []doctor.Check

	// Insights sums up what was saved; Prices are all that are known, and
	// SetPrice makes one the person's own.
	Insights func(outcome.InsightsConfig) outcome.Overview
	Price    func(model string) (outcome.Price, bool)
	Prices   func() ([]outcome.Price, error)
	SetPrice func(ctx context.Context, who auth.Identity, p outcome.Price) error

	// Setup looks for what a new user can begin with. Offers lists the models of a
	// provider with the key that is set, and SetKey tests a key, stores it and lists
	// the models.
	Setup  func(context.Context) setup.Found
	Offers func(ctx context.Context, provider string) ([]opener.Offered, error)
	SetKey func(ctx context.Context, who auth.Identity, provider string, key secret.Value) ([]opener.Offered, error)

	// Metrics writes them, of type MetricsType.
	Metrics     func() []byte
	MetricsType string

	Zone *time.Location // of days; nil: the machine's
	Now  func() time.Time
}

// A Probe is something that must hold for requests to be of use.
type Probe struct {
	Name  string // catalog, rules, store, trail, stopping
	Check func(context.Context) error
}

// A Setting is one key of the configuration.
type Setting struct {
	Key      string `json:"key"`
	Value    string `json:"value"`
	InForce  string `json:"inForce,omitempty"` // what the running program has, where that is something else
	Origin   string `json:"origin"`            // where it was said
	Writable bool   `json:"writable"`
	Why      string `json:"why,omitempty"` // it is not
	About    string `json:"about,omitempty"`

	Form map[string]any `json:"form,omitempty"` // JSON Schema of the value, with its default
}

// Me is who asks, and where they are.
type Me struct {
	ID        string     `json:"id"`
	Tenant    string     `json:"tenant,omitempty"`
	Name      string     `json:"name,omitempty"`
	Operator  bool       `json:"operator"`
	Decides   bool       `json:"decides"` // false: an agent
	SignOut   bool       `json:"signOut"`
	Version   string     `json:"version"`
	Workspace string     `json:"workspace"`
	Profile   string     `json:"profile"`
	Tokenizer string     `json:"tokenizer"`
	Model     string     `json:"model"`
	Window    int        `json:"window,omitempty"`
	Modes     []string   `json:"modes"`
	Intents   []string   `json:"intents"`
	Catalog   door.Stats `json:"catalog"`
	Own       int        `json:"own"`             // tools of the program itself, which lists and the graph have beside the catalog's
	Fault     string     `json:"fault,omitempty"` // why nothing may be called now

	Demo []demo.Request `json:"demo,omitempty"` // requests that the scripted model knows; absent: this is not the demo
}

// Health is that the program runs.
type Health struct {
	Status  string     `json:"status"` // ok
	Version string     `json:"version"`
	Catalog door.Stats `json:"catalog"`
}

// Readiness is that requests are of use.
type Readiness struct {
	Status string    `json:"status"` // ready
	Checks []Checked `json:"checks"`
}

// Checked is a [Probe] that was made. Error is for operators.
type Checked struct {
	Name  string `json:"name"`
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}

// A Changed holds notes about a setting that was changed.
type Changed struct {
	Restart bool   `json:"restart,omitempty"` // it applies after a restart
	Warning string `json:"warning,omitempty"` // what does not work with the new value
}

type (
	settingList struct {
		Settings []Setting `json:"settings"`
	}
	settingValue struct {
		Value *string `json:"value"`
	}
	settingFault struct {
		Fault string `json:"fault,omitempty"` // what is wrong with the value
		Fix   string `json:"fix,omitempty"`
	}
	settingNow struct {
		Setting
		Changed
	}
	checkup struct {
		Checks []doctor.Check `json:"checks"`
		Worst  doctor.Grade   `json:"worst"`
	}
	offerList struct {
		Models []opener.Offered `json:"models"`
	}
	keyValue struct {
		Key string `json:"key"`
	}
	priceList struct {
		Prices []outcome.Price `json:"prices"`
	}
	priceValue struct {
		Input      *float64 `json:"input"`
		Output     *float64 `json:"output"`
		CachedRead *float64 `json:"cachedRead"`
		CacheWrite *float64 `json:"cacheWrite"`
	}
)

// Routes returns the routes.
func Routes(cfg Config) []wire.Route {
	if cfg.Zone == nil {
		cfg.Zone = time.Local
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	s := &server{cfg: cfg}
	const group = "system"
	return []wire.Route{
		{Method: http.MethodGet, Path: "/healthz", Name: "health", Group: group, Summary: "Whether the program runs; needs no token", Answer: Health{}, Serve: s.health},
		{Method: http.MethodGet, Path: "/readyz", Name: "readiness", Group: group, Summary: "Whether requests can be served; 503 with the failed checks if not", Answer: Readiness{}, Serve: s.ready},
		{Method: http.MethodGet, Path: "/metrics", Name: "metrics", Group: group, Summary: "Numbers for Prometheus", Answer: wire.Raw{Type: cfg.MetricsType}, Operator: true, Serve: s.metrics},
		{Method: http.MethodGet, Path: "/api/v1/me", Name: "me", Group: group, Summary: "The caller, and the workspace", Answer: Me{}, Serve: s.me},
		{Method: http.MethodGet, Path: "/api/v1/settings", Name: "listSettings", Group: group, Summary: "All settings, and where each was set", Answer: settingList{}, Operator: true, Serve: s.settings},
		{Method: http.MethodPost, Path: "/api/v1/settings/{key}/check", Name: "checkSetting", Group: group, Summary: "Check a value of a setting without changing it", Body: settingValue{}, Answer: settingFault{}, Operator: true, Limit: 64 << 10, Serve: s.checkSetting},
		{Method: http.MethodPut, Path: "/api/v1/settings/{key}", Name: "changeSetting", Group: group, Summary: "Change a setting that may be changed here", Body: settingValue{}, Answer: settingNow{}, Operator: true, Decision: "open the page, or run ken config set", Limit: 64 << 10, Serve: s.set},
		{Method: http.MethodDelete, Path: "/api/v1/settings/{key}", Name: "resetSetting", Group: group, Summary: "Reset a setting that may be changed here to its default", Answer: settingNow{}, Operator: true, Decision: "open the page, or run ken config unset", Serve: s.reset},
		{Method: http.MethodGet, Path: "/api/v1/doctor", Name: "examine", Group: group, Summary: "Problems of this installation and how to fix them", Answer: checkup{}, Operator: true, Serve: s.doctor},
		{
			Method: http.MethodGet, Path: "/api/v1/insights", Name: "insights", Group: group, Summary: "What was shown, used and saved, per day", Answer: outcome.Overview{}, Operator: true, Serve: s.insights,
			Query: []wire.Param{{Name: "since", Type: wire.Instant, About: "Start; default: 30 days ago"}, {Name: "until", Type: wire.Instant, About: "End; default: now"}},
		},
		{Method: http.MethodGet, Path: "/api/v1/setup", Name: "findSetup", Group: group, Summary: "Models, clients, skills and APIs found on this machine", Answer: setup.Found{}, Operator: true, Serve: s.setup},
		{Method: http.MethodGet, Path: "/api/v1/providers/{provider}/models", Name: "listModels", Group: group, Summary: "The models of a provider and their prices; asks the provider", Answer: offerList{}, Operator: true, Serve: s.offers},
		{Method: http.MethodPut, Path: "/api/v1/providers/{provider}/key", Name: "setProviderKey", Group: group, Summary: "Test a provider's key and store it, encrypted; it is never returned", Body: keyValue{}, Answer: offerList{}, Operator: true, Decision: "open the page, or run ken secret set", Limit: 16 << 10, Serve: s.setKey},
		{Method: http.MethodGet, Path: "/api/v1/prices", Name: "listPrices", Group: group, Summary: "What models cost, in dollars for a million tokens", Answer: priceList{}, Operator: true, Serve: s.prices},
		{Method: http.MethodPut, Path: "/api/v1/prices/{model...}", Name: "changePrice", Group: group, Summary: "Set the price of a model", Body: priceValue{}, Answer: outcome.Price{}, Operator: true, Decision: "open the page", Limit: 4 << 10, Serve: s.setPrice},
	}
}

type server struct{ cfg Config }

// without is that a part of Ken is not there.
func without(what string) error {
	return &wire.Problem{Status: http.StatusNotFound, Code: "not-served", Detail: what + " is not served here"}
}
