package systemapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/duration"
	"ken/internal/find/outcome"
	"ken/internal/serve/auth"
	"ken/internal/serve/doctor"
	"ken/internal/serve/httpapi/wire"
	"ken/internal/untrusted"
)

func (s *server) health(*wire.Request) (any, error) {
	h := Health{Status: "ok", Version: s.cfg.Version}
	if s.cfg.Stats != nil {
		h.Catalog = s.cfg.Stats()
	}
	return h, nil
}

// patience is how long one probe may take.
const patience = 3 * time.Second

// ready makes all probes beside each other. One that does not answer in time
// says no.
func (s *server) ready(r *wire.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	checks := make([]Checked, len(s.cfg.Ready))
	var group sync.WaitGroup
	for i, p := range s.cfg.Ready {
		group.Go(func() { checks[i] = probe(ctx, p, r.Who.Operator) })
	}
	group.Wait()
	var wrong []string
	for _, c := range checks {
		if !c.OK {
			wrong = append(wrong, c.Name)
		}
	}
	if len(wrong) > 0 {
		return nil, &wire.Problem{
			Status: http.StatusServiceUnavailable, Code: "not-ready", Detail: "not ready: " + strings.Join(wrong, ", ") + "; ken doctor says more",
			More: map[string]any{"checks": checks},
		}
	}
	return Readiness{Status: "ready", Checks: checks}, nil
}

func probe(ctx context.Context, p Probe, tell bool) (c Checked) {
	c.Name = p.Name
	done := make(chan error, 1)
	go func() { // it may not heed ctx
		defer func() {
			if broke := recover(); broke != nil {
				done <- errors.New("the check broke")
			}
		}()
		done <- p.Check(ctx)
	}()
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = fmt.Errorf("timeout: not answered within %s", duration.Text(patience))
	}
	c.OK = err == nil
	if err != nil && tell {
		c.Error = untrusted.Line(err.Error(), 300)
	}
	return c
}

func (s *server) metrics(*wire.Request) (any, error) {
	if s.cfg.Metrics == nil {
		return nil, without("metrics")
	}
	return wire.Raw{Type: s.cfg.MetricsType, Body: s.cfg.Metrics()}, nil
}

func (s *server) me(r *wire.Request) (any, error) {
	who := r.Who
	me := Me{
		ID: who.Principal.ID, Tenant: who.Principal.Tenant, Name: who.Name, Operator: who.Operator, Decides: who.Decides, SignOut: who.SignedIn,
		Version: s.cfg.Version, Tokenizer: s.cfg.Tokenizer, Demo: s.cfg.Demo,
		Modes: list(s.cfg.Modes), Intents: list(s.cfg.Intents), Catalog: s.stats(who),
	}
	if s.cfg.View != nil {
		me.Own = s.cfg.View(who).Parts()
	}
	if who.Operator {
		me.Workspace = s.cfg.Workspace // where it lies on this machine is not for others
	}
	if s.cfg.Profile != nil {
		me.Profile = s.cfg.Profile()
	}
	if s.cfg.Model != nil {
		me.Model, me.Window = s.cfg.Model()
	}
	if s.cfg.Fault != nil {
		me.Fault = s.cfg.Fault(who.Operator)
	}
	return me, nil
}

func list(of func() []string) []string {
	if of == nil {
		return []string{}
	}
	return append([]string{}, of()...)
}

func (s *server) stats(who auth.Identity) door.Stats {
	if s.cfg.View == nil {
		return door.Stats{}
	}
	if v := s.cfg.View(who); !who.Operator {
		return v.RedactedStats()
	}
	return s.cfg.View(who).Stats()
}

func (s *server) settings(*wire.Request) (any, error) {
	if s.cfg.Settings == nil {
		return nil, without("the configuration")
	}
	return settingList{append([]Setting{}, s.cfg.Settings()...)}, nil
}

func (s *server) find(key string) (Setting, bool) {
	all := s.cfg.Settings()
	i := slices.IndexFunc(all, func(x Setting) bool { return x.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return all[i], true
}

// checkSetting says what is wrong with a value, for a page that shows it while a
// person types.
func (s *server) checkSetting(r *wire.Request) (any, error) {
	var in settingValue
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Value == nil {
		return nil, wire.Bad(`give the value: {"value": "…"}`)
	}
	if s.cfg.Settings == nil || s.cfg.Check == nil {
		return nil, without("checking the configuration")
	}
	key := r.PathValue("key")
	if _, ok := s.find(key); !ok {
		return nil, wire.Missing("there is no setting " + untrusted.Line(key, 100) + "; GET /api/v1/settings lists them")
	}
	err := s.cfg.Check(key, *in.Value)
	if err == nil {
		return settingFault{}, nil
	}
	out := settingFault{Fault: err.Error()}
	if e, ok := errors.AsType[*capability.Error](err); ok {
		out.Fault, out.Fix = e.Err.Error(), e.Fix
	}
	return out, nil
}

func (s *server) set(r *wire.Request) (any, error) {
	var in settingValue
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if in.Value == nil {
		return nil, wire.Bad(`say what it shall be: {"value": "…"}`)
	}
	if s.cfg.Settings == nil || s.cfg.Set == nil {
		return nil, without("changing the configuration")
	}
	key := r.PathValue("key")
	if err := s.writable(key); err != nil {
		return nil, err
	}
	changed, err := s.cfg.Set(r.Context(), r.Who, key, *in.Value)
	if err != nil {
		return nil, err
	}
	now, ok := s.find(key)
	if !ok { // another process took it away meanwhile
		now = Setting{Key: key, Value: *in.Value, Writable: true}
	}
	return settingNow{now, changed}, nil
}

// writable returns an error if there is no setting of a key, or if it cannot be
// changed here.
func (s *server) writable(key string) error {
	now, ok := s.find(key)
	if !ok {
		return wire.Missing("there is no setting " + untrusted.Line(key, 100) + "; GET /api/v1/settings lists them")
	}
	if now.Writable {
		return nil
	}
	why := now.Why
	if why == "" {
		why = "it is changed in ken.yaml alone"
	}
	return &wire.Problem{Status: http.StatusForbidden, Code: "read-only", Detail: key + " cannot be changed here: " + why, More: map[string]any{"why": why}}
}

// reset removes a setting, so that its default applies.
func (s *server) reset(r *wire.Request) (any, error) {
	if s.cfg.Settings == nil || s.cfg.Reset == nil {
		return nil, without("changing the configuration")
	}
	key := r.PathValue("key")
	if err := s.writable(key); err != nil {
		return nil, err
	}
	changed, err := s.cfg.Reset(r.Context(), r.Who, key)
	if err != nil {
		return nil, err
	}
	now, _ := s.find(key)
	return settingNow{now, changed}, nil
}

func (s *server) doctor(r *wire.Request) (any, error) {
	if s.cfg.Doctor == nil {
		return nil, without("the doctor")
	}
	checks := append([]doctor.Check{}, s.cfg.Doctor(r.Context())...)
	return checkup{checks, doctor.Worst(checks)}, nil
}

const usualDays = 30

func (s *server) insights(r *wire.Request) (any, error) {
	if s.cfg.Insights == nil {
		return nil, without("what was saved")
	}
	until := r.Instant("until")
	if until.IsZero() {
		until = s.cfg.Now()
	}
	since := r.Instant("since")
	if since.IsZero() {
		since = until.AddDate(0, 0, -usualDays)
	}
	if !since.Before(until) {
		return nil, wire.Bad("since is not before until")
	}
	return s.cfg.Insights(outcome.InsightsConfig{Since: since, Until: until, Zone: s.cfg.Zone, Tokenizer: s.cfg.Tokenizer, Price: s.cfg.Price}), nil
}

func (s *server) prices(*wire.Request) (any, error) {
	if s.cfg.Prices == nil {
		return nil, without("the table of prices")
	}
	all, err := s.cfg.Prices()
	if err != nil {
		return nil, err
	}
	return priceList{append([]outcome.Price{}, all...)}, nil
}

const (
	dearest      = 10_000 // dollars for a million tokens, which no price reaches
	longestModel = 200
)

func (s *server) setPrice(r *wire.Request) (any, error) {
	var in priceValue
	if err := r.Decode(&in); err != nil {
		return nil, err
	}
	if s.cfg.SetPrice == nil {
		return nil, without("changing prices")
	}
	model := r.PathValue("model")
	if err := modelName(model); err != nil {
		return nil, err
	}
	p := outcome.Price{Model: model, Own: true}
	for _, each := range [...]struct {
		name  string
		given *float64
		into  *float64
	}{
		{"input", in.Input, &p.Input}, {"output", in.Output, &p.Output}, {"cachedRead", in.CachedRead, &p.CachedRead}, {"cacheWrite", in.CacheWrite, &p.CacheWrite},
	} {
		if each.given == nil {
			return nil, wire.Bad(each.name + " is missing; say what a million tokens cost, in dollars")
		}
		x := *each.given
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 || x >= dearest {
			return nil, wire.Bad(fmt.Sprintf("%s is %v; it is in dollars for a million tokens, from 0 to less than %d", each.name, x, dearest))
		}
		*each.into = x
	}
	if err := s.cfg.SetPrice(r.Context(), r.Who, p); err != nil {
		return nil, err
	}
	if s.cfg.Price != nil {
		if now, ok := s.cfg.Price(model); ok {
			now.Model = model
			return now, nil
		}
	}
	return p, nil
}

// modelName rejects what is neither the name of a model nor a pattern of names as the
// table has them: it is written into a file.
func modelName(name string) error {
	bad := func(why string) error {
		return &capability.Error{Kind: capability.Invalid, Op: "change the price of", Target: untrusted.Line(name, 100), Err: errors.New(why), Fix: "name the model as its provider does"}
	}
	switch {
	case strings.TrimSpace(name) != name || name == "":
		return bad("the name is empty, or has spaces around it")
	case len(name) > longestModel:
		return bad(fmt.Sprintf("the name has more than %d bytes", longestModel))
	}
	for _, c := range name {
		if c <= ' ' || c > 0x7e {
			return bad(fmt.Sprintf("the name has %q in it", c))
		}
	}
	return nil
}
