package gemini

import (
	"slices"
	"strings"

	"ken/llm"
)

// results writes what the tools gave, in the order in which they were called,
// because without ids that is how the wire tells them apart.
func (w *writer) results(m llm.Message, calls []*llm.ToolCall) error {
	var results []*llm.ToolResult
	for _, b := range m.Blocks {
		if b.Result != nil {
			results = append(results, b.Result)
		}
	}
	if len(results) > 1 {
		place := make(map[string]int, len(calls))
		for i, c := range calls {
			place[c.ID] = i - len(calls) // those that answer no call go behind
		}
		slices.SortStableFunc(results, func(a, b *llm.ToolResult) int { return place[a.ID] - place[b.ID] })
	}
	for _, r := range results {
		if err := w.result(r, calls); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) result(r *llm.ToolResult, calls []*llm.ToolCall) error {
	name := r.Name
	if i := slices.IndexFunc(calls, func(c *llm.ToolCall) bool { return c.ID == r.ID }); i >= 0 {
		name = calls[i].Name
	}
	var texts []string
	var images []*llm.Image
	for _, b := range r.Blocks {
		switch {
		case b.Tools != nil:
			return unsupported(llm.Search)
		case b.Text != "":
			texts = append(texts, b.Text)
		case b.Image != nil:
			images = append(images, b.Image)
		}
	}
	text := strings.Join(texts, "\n")
	switch {
	case !w.declared[name]:
		verb := "gave"
		if r.Failed {
			verb = "failed"
		}
		w.part(`{"text":`)
		w.text("[" + name + " " + verb + ": " + text + "]")
		w.raw(`}`)
	case w.media:
		w.response(r, name, text, images)
		return nil
	default:
		w.response(r, name, text, nil)
	}
	for _, image := range images {
		w.part(`{"inlineData":`)
		w.blob(image)
		w.raw(`}`)
	}
	return nil
}

func (w *writer) response(r *llm.ToolResult, name, text string, images []*llm.Image) {
	w.part(`{"functionResponse":{`)
	w.id(r.ID)
	w.raw(`"name":`)
	w.text(name)
	key := "output"
	if r.Failed {
		key = "error"
	}
	w.raw(`,"response":{"` + key + `":`)
	w.text(text)
	w.raw(`}`)
	for i, image := range images {
		if i == 0 {
			w.raw(`,"parts":[`)
		} else {
			w.raw(`,`)
		}
		w.raw(`{"inlineData":`)
		w.blob(image)
		w.raw(`}`)
	}
	if len(images) > 0 {
		w.raw(`]`)
	}
	w.raw(`}}`)
}
