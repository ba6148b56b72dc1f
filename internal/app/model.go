package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/talk/engine"
	"ken/internal/talk/model"
	"ken/internal/talk/provider"
	"ken/internal/talk/provider/anthropic"
	"ken/internal/talk/provider/gemini"
	"ken/internal/talk/provider/openai"
	"ken/internal/wholefile"
	"ken/llm"
)

// ErrNoModel means that no model is configured that could answer.
var ErrNoModel = errors.New("no model is configured")

// A voice is a model that was opened, and what is known of it.
type voice struct {
	llm.Model
	ref      string // as ken.yaml has it; empty: it is the program's own
	name     string // as its provider knows it
	row      model.Row
	provider config.Provider
	open     func(provider.Config) llm.Model // the same again; nil: it is the program's own
	cfg      provider.Config
}

// telling returns the model so that it tells retry before it waits.
func (v voice) telling(retry engine.Retry) llm.Model {
	if v.open == nil || retry == nil {
		return v.Model
	}
	cfg := v.cfg
	cfg.Notify = func(r provider.Retrying) { retry(r.After, r.Err) }
	return v.open(cfg)
}

// voice opens the model that is written PROVIDER/NAME. It sends no request: a
// provider that cannot be reached is reported by the first one.
func (a *App) voice(now *config.Config, ref string) (voice, error) {
	if ref == "" {
		return voice{}, &capability.Error{
			Kind: capability.Unavailable, Op: "answer", Target: "a message", Err: ErrNoModel,
			Fix: "name one with `ken config set model PROVIDER/NAME`, as in anthropic/…, openai/…, gemini/… or, on this machine, ollama/…; commands that begin with / work without",
		}
	}
	p, name, err := now.Provider(ref)
	if err != nil {
		return voice{}, &capability.Error{Kind: capability.Invalid, Op: "open the model", Target: ref, Err: err, Fix: "fix model, or providers, in ken.yaml"}
	}
	table, err := a.modelTable(now)
	if err != nil {
		return voice{}, err
	}
	cfg := provider.Config{Name: p.Name, BaseURL: p.URL, Model: name, MaxTokens: now.Chat.MaxTokens}
	if p.Key != "" {
		cfg.Key = func(context.Context) (string, error) { return a.providerKey(p) }
	}
	for k, text := range p.Headers {
		v, err := a.secrets.Expand(text)
		if err != nil {
			return voice{}, &capability.Error{Kind: capability.Invalid, Op: "open the model", Target: ref, Err: err, Fix: "fix providers." + p.Name + ".headers"}
		}
		if cfg.Header == nil {
			cfg.Header = http.Header{}
		}
		a.redactor.Hold(v.Reveal())
		cfg.Header.Set(k, v.Reveal())
	}
	v := voice{ref: ref, name: name, provider: p}
	v.row, _ = table.Find(model.Wire(p.Wire), name) // what is not in it has the least
	v.cfg, v.open = cfg, func(cfg provider.Config) llm.Model {
		switch p.Wire {
		case config.WireMessages:
			return anthropic.New(cfg)
		case config.WireResponses:
			m := openai.NewResponses(cfg)
			m.Table, m.Refused = table, a.refusedBy(p.Name)
			return m
		case config.WireGemini:
			return gemini.New(cfg)
		}
		m := openai.NewChat(cfg)
		m.Refused = a.refusedBy(p.Name)
		return m
	}
	v.Model = v.open(cfg)
	return v, nil
}

// refusedBy returns what a provider's servers would not take, for as long as the
// program runs.
func (a *App) refusedBy(provider string) *openai.Refusals {
	known, _ := a.talking.refused.LoadOrStore(provider, &openai.Refusals{})
	return known.(*openai.Refusals) // nothing else is put there
}

// answering returns the model that answers: the program's own, or that of
// ken.yaml.
func (a *App) answering(now *config.Config) (voice, error) {
	if m := a.talking.given; m != nil {
		table, err := a.modelTable(now)
		if err != nil {
			return voice{}, err
		}
		row, _ := table.Find(model.Chat, "") // nothing is known of it
		return voice{Model: m, row: row}, nil
	}
	return a.voice(now, now.Model)
}

// providerKey returns the key of a provider, and makes it known to the redactor.
func (a *App) providerKey(p config.Provider) (string, error) {
	v, err := a.secrets.Lookup(p.Key)
	if err != nil {
		return "", fmt.Errorf("%w; run `ken secret set %s`, or set the variable of that name", err, p.Key)
	}
	a.redactor.Hold(v.Reveal())
	return v.Reveal(), nil
}

// UseModel has another model answer than the one that ken.yaml names, from the
// next turn on.
func (a *App) UseModel(ref string) {
	a.loader.UseModel(ref)
}

// ModelName returns the model that answers, as PROVIDER/NAME; empty: none was
// named.
func (a *App) ModelName() string { return a.effective().Model }

// tableFiles keeps the table of models from one turn to the next, for as long as
// its files look the same.
type tableFiles struct {
	mu    sync.Mutex
	table *model.Table // the last that could be read
	marks []wholefile.Stamp
	wrong error // why the files cannot be followed now, or nil
}

// modelTable returns the table of models: the rows of the user's file stand
// before those of the program. Files that cannot be followed change nothing,
// unless they are the first.
func (a *App) modelTable(now *config.Config) (*model.Table, error) {
	file := now.Chat.ModelTable
	marks := []wholefile.Stamp{wholefile.StampOf(filepath.Join(a.Places.State, pricesFile))}
	if file != "" {
		marks = append(marks, wholefile.StampOf(file))
	}
	t := &a.talking.table
	t.mu.Lock()
	defer t.mu.Unlock()
	same := func(m, now wholefile.Stamp) bool { return m.Path == now.Path && m.Same(now) }
	if t.table != nil && slices.EqualFunc(t.marks, marks, same) {
		return t.table, nil
	}
	table, err := a.readModelTable(file)
	switch {
	case err == nil:
		t.table = table
	case t.table == nil:
		return nil, err
	default:
		a.log.Warn("the table of models stays as it was", "error", err)
	}
	t.marks, t.wrong = marks, err
	return t.table, nil
}

func (a *App) readModelTable(file string) (*model.Table, error) {
	prices, err := a.ownPrices()
	if err != nil {
		return nil, err
	}
	if file == "" {
		return model.NewTable(nil).Priced(prices), nil
	}
	text, err := os.ReadFile(file)
	var own []model.Row
	if err == nil {
		own, err = model.Parse(text)
	}
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "read", Target: file, Err: err, Fix: "fix it, or chat.modelTable in ken.yaml"}
	}
	return model.NewTable(own).Priced(prices), nil
}

// tableFault says why the table of models is not as its files say, or nil.
func (a *App) tableFault() error {
	t := &a.talking.table
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.wrong
}

// CheckModel says why the model that is configured cannot be used, as far as
// that is known without asking it. None at all is [ErrNoModel].
func (a *App) CheckModel() error {
	_, err := a.answering(a.effective())
	return err
}

// ModelRow returns what is known of the model that is configured.
func (a *App) ModelRow() model.Row {
	v, err := a.answering(a.effective())
	if err != nil {
		return model.Row{}
	}
	return v.row
}
