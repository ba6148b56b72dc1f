package opener

import (
	"os"
	"slices"
	"sync"

	"ken/capability"
	"ken/internal/config"
	"ken/internal/talk/model"
	"ken/internal/wholefile"
)

// tableFiles keeps the table of models from one turn to the next, for as long as
// its files look the same.
type tableFiles struct {
	mu    sync.Mutex
	table *model.Table // the last that could be read
	marks []wholefile.Stamp
	wrong error // why the files cannot be followed now, or nil
}

// models returns the table of models: the rows of the user's file stand before
// those of the program. Files that cannot be followed change nothing, unless they
// are the first.
func (o *Opener) models(now *config.Config) (*model.Table, error) {
	file := now.Chat.ModelTable
	marks := []wholefile.Stamp{wholefile.StampOf(o.pricesFile())}
	if file != "" {
		marks = append(marks, wholefile.StampOf(file))
	}
	t := &o.table
	t.mu.Lock()
	defer t.mu.Unlock()
	same := func(m, now wholefile.Stamp) bool { return m.Path == now.Path && m.Same(now) }
	if t.table != nil && slices.EqualFunc(t.marks, marks, same) {
		return t.table, nil
	}
	table, err := o.readModels(file)
	switch {
	case err == nil:
		t.table = table
	case t.table == nil:
		return nil, err
	default:
		o.cfg.Log.Warn("the table of models stays as it was", "error", err)
	}
	t.marks, t.wrong = marks, err
	return t.table, nil
}

func (o *Opener) readModels(file string) (*model.Table, error) {
	prices, err := o.ownPrices()
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
func (o *Opener) tableFault() error {
	o.table.mu.Lock()
	defer o.table.mu.Unlock()
	return o.table.wrong
}
