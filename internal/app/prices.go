package app

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
	"ken/internal/config"
	"ken/internal/find/outcome"
	"ken/internal/talk/model"
	"ken/internal/wholefile"
)

// The prices that a person wrote in the page are in a file of their own, beside
// the rest of the state: the model table of ken.yaml is the person's, with their
// comments, and is not written to.
const pricesFile = "prices.json"

// ownPrices reads them, by the name of the model as its provider knows it.
func (a *App) ownPrices() (map[string]model.Price, error) {
	own := map[string]model.Price{}
	text, err := os.ReadFile(filepath.Join(a.Places.State, pricesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return own, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	if err != nil {
		return nil, &capability.Error{Kind: capability.Invalid, Op: "read", Target: filepath.Join(a.Places.State, pricesFile), Err: err, Fix: "fix it, or remove it"}
	}
	return own, nil
}

// priceOf returns what a model costs that is written PROVIDER/NAME.
func (a *App) priceOf(ref string) (outcome.Price, bool) {
	now := a.effective()
	p, name, err := now.Provider(ref)
	if err != nil {
		return outcome.Price{}, false
	}
	table, err := a.modelTable(now)
	if err != nil {
		return outcome.Price{}, false
	}
	row, _ := table.Find(model.Wire(p.Wire), name)
	own, _ := a.ownPrices() // what cannot be read was told by the table
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

// prices returns the price of the model that answers, and those that a person
// wrote.
func (a *App) prices() ([]outcome.Price, error) {
	own, err := a.ownPrices()
	if err != nil {
		return nil, err
	}
	var out []outcome.Price
	ref := a.ModelName()
	if ref != "" {
		now, _ := a.priceOf(ref)
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
func (a *App) SetPrice(p outcome.Price) error {
	name := p.Model
	if _, bare, err := a.effective().Provider(p.Model); err == nil {
		name = bare
	}
	name = strings.ToLower(name)
	price := model.Price{Input: p.Input, Output: p.Output, CachedRead: p.CachedRead, CacheWrite: p.CacheWrite}
	a.talking.pricing.Lock()
	defer a.talking.pricing.Unlock()
	own, err := a.ownPrices()
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
	file := filepath.Join(a.Places.State, pricesFile)
	if err := os.MkdirAll(a.Places.State, 0o700); err != nil {
		return config.WriteError(file, err)
	}
	return config.WriteError(file, wholefile.Write(file, append(text, '\n'), 0o600))
}
