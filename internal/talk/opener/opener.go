// Package opener opens the model that ken.yaml names: it finds the provider and
// its key, what the table of models says of the model, and what it costs.
package opener

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/secret"
	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/internal/talk/provider/anthropic"
	"ken/internal/talk/provider/gemini"
	"ken/internal/talk/provider/openai"
	"ken/llm"
)

// ErrNoModel means that no model is chosen that could answer.
var ErrNoModel = errors.New("no model is chosen")

// Config says what an Opener works with. All fields but Given and Wrap are
// required.
type Config struct {
	StateDir string                // where the user's own prices are kept
	Settings func() *config.Config // in force; asked for each time
	Secrets  *secret.Store         // the keys of providers
	Hold     func(values ...string)
	Log      *slog.Logger

	// Given, when not nil, answers instead of the model that the settings name.
	Given llm.Model

	// Wrap returns a model with plugins between it and Ken. Nil: there are none.
	Wrap func(llm.Model) llm.Model
}

// An Opener opens models. It may be used from any number of goroutines.
type Opener struct {
	cfg     Config
	table   tableFiles
	pricing sync.Mutex // held while prices are written
	refused sync.Map   // *openai.Refusals, by provider
}

// New returns an Opener. It opens no model and reads no file.
func New(cfg Config) *Opener {
	if cfg.Wrap == nil {
		cfg.Wrap = func(m llm.Model) llm.Model { return m }
	}
	return &Opener{cfg: cfg}
}

// An opened model is one that can be asked, and what is known of it.
type opened struct {
	llm.Model
	ref      string // as ken.yaml has it; empty: the model was given
	name     string // as its provider knows it
	row      model.Row
	provider config.Provider
	again    func(provider.Config) llm.Model // opens it once more; nil: the model was given
	cfg      provider.Config
}

// telling returns the model so that it calls retry before it waits.
func (m opened) telling(retry func(after time.Duration, err error)) llm.Model {
	if m.again == nil || retry == nil {
		return m.Model
	}
	cfg := m.cfg
	cfg.Notify = func(r provider.Retrying) { retry(r.After, r.Err) }
	return m.again(cfg)
}

// open opens the model that is written PROVIDER/NAME. It sends no request: a
// provider that cannot be reached is reported by the first one.
func (o *Opener) open(now *config.Config, ref string) (opened, error) {
	if ref == "" {
		return opened{}, &capability.Error{
			Kind: capability.Unavailable, Op: "answer", Target: "a message", Err: ErrNoModel,
			Fix: "run ken model to choose one, or ken model set PROVIDER/NAME; ken demo shows Ken at work without one, and commands that begin with / need none",
		}
	}
	p, name, err := now.Provider(ref)
	if err != nil {
		return opened{}, &capability.Error{Kind: capability.Invalid, Op: "open the model", Target: ref, Err: err, Fix: "fix model, or providers, in ken.yaml"}
	}
	table, err := o.models(now)
	if err != nil {
		return opened{}, err
	}
	cfg := provider.Config{Name: p.Name, BaseURL: p.URL, Model: name, MaxTokens: now.Chat.MaxTokens}
	if p.Key != "" {
		cfg.Key = func(context.Context) (string, error) { return o.key(p) }
	}
	for k, text := range p.Headers {
		v, err := o.cfg.Secrets.Expand(text)
		if err != nil {
			return opened{}, &capability.Error{Kind: capability.Invalid, Op: "open the model", Target: ref, Err: err, Fix: "fix providers." + p.Name + ".headers"}
		}
		if cfg.Header == nil {
			cfg.Header = http.Header{}
		}
		o.cfg.Hold(v.Reveal())
		cfg.Header.Set(k, v.Reveal())
	}
	m := opened{ref: ref, name: name, provider: p, cfg: cfg}
	m.row, _ = table.Find(model.Wire(p.Wire), name) // a model that is not listed has the smallest row
	m.again = func(cfg provider.Config) llm.Model {
		switch p.Wire {
		case config.WireMessages:
			return anthropic.New(cfg)
		case config.WireResponses:
			m := openai.NewResponses(cfg)
			m.Table, m.Refused = table, o.refusedBy(p.Name)
			return m
		case config.WireGemini:
			return gemini.New(cfg)
		}
		m := openai.NewChat(cfg)
		m.Refused = o.refusedBy(p.Name)
		return m
	}
	m.Model = m.again(cfg)
	return m, nil
}

// refusedBy returns what a provider's servers would not take, for as long as the
// program runs.
func (o *Opener) refusedBy(provider string) *openai.Refusals {
	known, _ := o.refused.LoadOrStore(provider, &openai.Refusals{})
	return known.(*openai.Refusals) // nothing else is put there
}

// answering opens the model that answers: the one that was given, or that of the
// settings.
func (o *Opener) answering(now *config.Config) (opened, error) {
	if o.cfg.Given == nil {
		return o.open(now, now.Model)
	}
	table, err := o.models(now)
	if err != nil {
		return opened{}, err
	}
	row, _ := table.Find(model.Chat, "") // nothing is known of it
	return opened{Model: o.cfg.Given, row: row}, nil
}

// key returns the key of a provider, and makes it known to the redactor.
func (o *Opener) key(p config.Provider) (string, error) {
	v, err := o.cfg.Secrets.Lookup(p.Key)
	if err != nil {
		var why error = err
		if e, ok := errors.AsType[*capability.Error](err); ok && e.Kind == capability.NotFound {
			plain := *e
			plain.Fix = "" // this says more
			why = &plain
		}
		return "", fmt.Errorf("%w; run `ken secret set %s`, or set the variable of that name", why, p.Key)
	}
	o.cfg.Hold(v.Reveal())
	return v.Reveal(), nil
}

// Name returns the model that answers, as PROVIDER/NAME; empty: none was named.
func (o *Opener) Name() string { return o.cfg.Settings().Model }

// Check says why the model that is configured cannot be used, as far as that is
// known without asking it. None at all is [ErrNoModel].
func (o *Opener) Check() error {
	_, err := o.answering(o.cfg.Settings())
	return err
}

// Row returns what is known of the model that is configured; nothing if it
// cannot be opened.
func (o *Opener) Row() model.Row {
	m, err := o.answering(o.cfg.Settings())
	if err != nil {
		return model.Row{}
	}
	return m.row
}

// Model returns the model that answers.
func (o *Opener) Model() (llm.Model, error) {
	m, err := o.answering(o.cfg.Settings())
	if err != nil {
		return nil, err
	}
	return o.cfg.Wrap(m.Model), nil
}

// Named returns the model that is written PROVIDER/NAME, or for "" the one that
// answers, with its name and price.
func (o *Opener) Named(ref string) (llm.Model, string, model.Price, error) {
	now := o.cfg.Settings()
	m, err := o.answering(now)
	if ref != "" {
		m, err = o.open(now, ref)
	}
	if err != nil {
		return nil, ref, model.Price{}, err
	}
	return o.cfg.Wrap(m.Model), cmp.Or(m.ref, m.name, "the given model"), m.row.Price, nil
}

// A Turn is the models of one turn. It has the fields of the engine's Model.
type Turn struct {
	llm.Model
	Name      string // as the provider knows it
	Ref       string // as ken.yaml has it; empty: the model was given
	Row       model.Row
	Effort    string
	MaxTokens int

	Condenser    llm.Model
	CondenserRow model.Row
}

// ForTurn returns the models of a turn that begins: the one that answers and the
// one that summarizes. They call retry before they wait to ask again.
func (o *Opener) ForTurn(retry func(after time.Duration, err error)) (Turn, error) {
	now := o.cfg.Settings()
	m, err := o.answering(now)
	if err != nil {
		return Turn{}, err
	}
	t := Turn{Model: o.cfg.Wrap(m.telling(retry)), Name: m.name, Ref: m.ref, Row: m.row, Effort: string(now.Chat.Effort), MaxTokens: now.Chat.MaxTokens}
	t.Condenser, t.CondenserRow = t.Model, t.Row
	if ref := now.Chat.CondenseModel; ref != "" {
		other, err := o.open(now, ref)
		if err != nil {
			return Turn{}, err
		}
		t.Condenser, t.CondenserRow = o.cfg.Wrap(other.telling(retry)), other.row
	}
	return t, nil
}
