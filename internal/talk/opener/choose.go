package opener

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/secret"
	"ken/internal/talk/model"
	"ken/internal/talk/provider"
)

// probeFor is how long a server on this machine has to answer a probe.
const probeFor = 300 * time.Millisecond

// listFor is how long a provider has to list its models.
const listFor = 10 * time.Second

// A Choice is a provider that a person can choose a model of.
type Choice struct {
	Name    string `json:"name"`
	URL     string `json:"url"`
	Key     string `json:"key,omitempty"`    // name of the secret or variable that has its key; empty: it needs none
	KeySet  string `json:"keySet,omitempty"` // where that key is: environment or stored; empty: nowhere
	Local   bool   `json:"local"`            // it is on this machine
	Answers bool   `json:"answers"`          // it is local, and has models

	Models []Offered `json:"models,omitempty"` // of a local one that answers
}

// An Offered is a model that a provider lists. Prices are dollars for a million
// tokens; Priced says whether they are known.
type Offered struct {
	Ref    string  `json:"ref"` // as ken.yaml has it
	Window int     `json:"window,omitempty"`
	Local  bool    `json:"local,omitempty"` // its provider is on this machine
	Priced bool    `json:"priced"`
	Input  float64 `json:"input,omitempty"`
	Output float64 `json:"output,omitempty"`
}

// Choices returns all providers. It asks those on this machine, all at the same
// time and without a key, which models they have; the others are not asked.
func (o *Opener) Choices(ctx context.Context) []Choice {
	now := o.cfg.Settings()
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	defer cancel()
	providers := now.AllProviders()
	list := make([]Choice, len(providers))
	for i, p := range providers {
		list[i] = Choice{Name: p.Name, URL: p.URL, Key: p.Key, KeySet: o.keySet(p.Key), Local: local(p.URL)}
		if !list[i].Local {
			continue
		}
		group.Go(func() {
			p.Key, p.Headers = "", nil // a probe carries no secret
			ids, err := listed(ctx, p, nil)
			if list[i].Answers = err == nil && len(ids) > 0; list[i].Answers {
				list[i].Models = o.offered(now, p, ids)
			}
		})
	}
	group.Wait()
	return list
}

// keySet says where the value of a secret is.
func (o *Opener) keySet(name string) string {
	if name == "" {
		return ""
	}
	items, _ := o.cfg.Secrets.List() // a store that cannot be read has none
	for _, i := range items {
		if i.Name == name && !i.Shadowed {
			return "stored"
		}
	}
	if _, err := o.cfg.Secrets.Lookup(name); err == nil {
		return "environment"
	}
	return ""
}

// local reports whether a URL leads to this machine.
func local(address string) bool {
	u, err := url.Parse(address)
	return err == nil && config.Loopback(u.Hostname())
}

// Offers asks a provider for its models, with their prices. A key that is not
// empty is used instead of the one that is set.
func (o *Opener) Offers(ctx context.Context, name string, key secret.Value) ([]Offered, error) {
	now := o.cfg.Settings()
	p, _, err := now.Provider(name + "/any")
	if err != nil {
		return nil, &capability.Error{Kind: capability.NotFound, Op: "list the models of", Target: name, Err: err}
	}
	given := key.Reveal()
	if given == "" && p.Key != "" {
		if given, err = o.key(p); err != nil {
			return nil, &capability.Error{Kind: capability.Unavailable, Op: "list the models of", Target: name, Err: err}
		}
	}
	o.cfg.Hold(given)
	header := http.Header{}
	for k, text := range p.Headers {
		v, err := o.cfg.Secrets.Expand(text)
		if err != nil {
			return nil, &capability.Error{Kind: capability.Invalid, Op: "list the models of", Target: name, Err: err, Fix: "fix providers." + name + ".headers"}
		}
		o.cfg.Hold(v.Reveal())
		header.Set(k, v.Reveal())
	}
	ctx, cancel := context.WithTimeout(ctx, listFor)
	defer cancel()
	p.Key = given
	ids, err := listed(ctx, p, header)
	if err != nil {
		return nil, &capability.Error{Kind: capability.Upstream, Op: "list the models of", Target: name, Err: err}
	}
	if len(ids) == 0 {
		return nil, &capability.Error{Kind: capability.Upstream, Op: "list the models of", Target: name, Err: errors.New("server answers, but lists no models"), Fix: "name one with `ken model set " + name + "/NAME`"}
	}
	return o.offered(now, p, ids), nil
}

// listed asks a server for the names of its models. Key of p is the key itself.
func listed(ctx context.Context, p config.Provider, header http.Header) ([]string, error) {
	path, headers := listOfModels(p, p.Key)
	return provider.List(ctx, provider.Config{Name: p.Name, BaseURL: strings.TrimRight(p.URL, "/"), Header: header}, path, headers)
}

// offered adds to names of models what the table knows of them.
func (o *Opener) offered(now *config.Config, p config.Provider, ids []string) []Offered {
	table, err := o.models(now)
	var out []Offered
	for _, id := range ids {
		id = strings.TrimPrefix(id, "models/") // as Gemini writes them
		one := Offered{Ref: p.Name + "/" + id, Local: local(p.URL)}
		if err == nil {
			row, known := table.Find(model.Wire(p.Wire), id)
			if known {
				one.Window = row.Window
			}
			one.Priced, one.Input, one.Output = row.Price.Known(), row.Price.Input, row.Price.Output
		}
		out = append(out, one)
	}
	return out
}

// SetKey stores the key of a provider, encrypted, after the provider has accepted
// it. It returns the provider's models. A key that is rejected is not stored.
func (o *Opener) SetKey(ctx context.Context, name string, key secret.Value) ([]Offered, error) {
	p, _, err := o.cfg.Settings().Provider(name + "/any")
	if err != nil {
		return nil, &capability.Error{Kind: capability.NotFound, Op: "store the key of", Target: name, Err: err}
	}
	if p.Key == "" {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "store the key of", Target: name, Err: errors.New("provider needs no key"), Fix: "providers." + name + ".key names the secret of a provider that does"}
	}
	list, err := o.Offers(ctx, name, key)
	if err != nil {
		return nil, err
	}
	return list, o.cfg.Secrets.Set(p.Key, key)
}
