package opener

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/fileerror"
	"ken/internal/find/outcome"
	"ken/internal/talk/model"
	"ken/internal/wholefile"
)

// pricesFile is where the prices are that a person wrote in the page. They have a
// file of their own beside the rest of the state: the model table of ken.yaml is
// the person's, with their comments, and is not written to.
func (o *Opener) pricesFile() string { return filepath.Join(o.cfg.StateDir, "prices.json") }

// ownPrices reads the prices of that file, by the name of the model as its
// provider knows it.
func (o *Opener) ownPrices() (map[string]model.Price, error) {
	own := map[string]model.Price{}
	text, err := os.ReadFile(o.pricesFile())
	if errors.Is(err, fs.ErrNotExist) {
		return own, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "read", Target: o.pricesFile(), Err: err, Fix: "fix it, or remove it"}
	}
	return own, nil
}

// Price returns what a model costs that is written PROVIDER/NAME.
func (o *Opener) Price(ref string) (outcome.Price, bool) {
	now := o.cfg.Settings()
	p, name, err := now.Provider(ref)
	if err != nil {
		return outcome.Price{}, false
	}
	table, err := o.models(now)
	if err != nil {
		return outcome.Price{}, false
	}
	row, _ := table.Find(model.Wire(p.Wire), name)
	own, _ := o.ownPrices() // the table has reported what cannot be read
	_, isOwn := own[strings.ToLower(name)]
	out := outcome.Price{
		Model: ref, Input: row.Price.Input, Output: row.Price.Output, CachedRead: row.Price.CachedRead, CacheWrite: row.Price.CacheWrite,
		Source: row.Source, Own: isOwn, Life: row.Cache.Life, Window: row.Window,
	}
	if isOwn {
		out.Source = "your own"
	}
	return out, row.Price.Known()
}

// Prices returns the price of the model that answers, and those that a person
// wrote.
func (o *Opener) Prices() ([]outcome.Price, error) {
	own, err := o.ownPrices()
	if err != nil {
		return nil, err
	}
	var out []outcome.Price
	ref := o.Name()
	if ref != "" {
		now, _ := o.Price(ref)
		now.Model = ref
		out = append(out, now)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if _, answering, _ := strings.Cut(ref, "/"); strings.EqualFold(name, answering) {
			continue
		}
		p := own[name]
		out = append(out, outcome.Price{Model: name, Input: p.Input, Output: p.Output, CachedRead: p.CachedRead, CacheWrite: p.CacheWrite, Source: "your own", Own: true})
	}
	return out, nil
}

// SetPrice keeps a person's own price of a model, which may be written with its
// provider. It applies from the next turn on. Earlier costs are not calculated
// again; earlier savings are.
func (o *Opener) SetPrice(p outcome.Price) error {
	name := p.Model
	if _, bare, err := o.cfg.Settings().Provider(p.Model); err == nil {
		name = bare
	}
	name = strings.ToLower(name)
	price := model.Price{Input: p.Input, Output: p.Output, CachedRead: p.CachedRead, CacheWrite: p.CacheWrite}
	o.pricing.Lock()
	defer o.pricing.Unlock()
	own, err := o.ownPrices()
	if err != nil {
		return err
	}
	const most = 1000
	if _, there := own[name]; !there && len(own) >= most {
		return &capability.Error{Kind: capability.Denied, Op: "set the price of", Target: name, Err: fmt.Errorf("limit reached: %d prices", most), Fix: "use chat.modelTable, whose patterns stand for many models"}
	}
	own[name] = price
	text, err := json.MarshalIndent(own, "", "  ")
	if err != nil {
		return err
	}
	file := o.pricesFile()
	if err := os.MkdirAll(o.cfg.StateDir, 0o700); err != nil {
		return fileerror.Write(file, err)
	}
	return fileerror.Write(file, wholefile.Write(file, append(text, '\n'), 0o600))
}
