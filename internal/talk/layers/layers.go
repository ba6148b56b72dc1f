// Package layers builds the system prompt of a session: the user's files, the map
// of the catalog, the work at hand, the skills, the conversation before and what
// plugins add.
package layers

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ken/capability"
	"ken/internal/config/orchestration"
	"ken/internal/door"
	"ken/internal/govern/reload"
	"ken/internal/talk/event"
	"ken/internal/talk/layerfiles"
	"ken/internal/talk/model"
	"ken/internal/talk/prompt"
	"ken/internal/talk/session"
	"ken/internal/untrusted"
	"ken/plugin"
)

// A Builder builds system prompts. All fields but Plugins are required.
type Builder struct {
	Home      string // Ken's folder, with the user's own files
	Workspace string
	Foreign   bool // of the workspace only AGENTS.md is read

	Door     *door.Door
	Current  func() *reload.Snapshot // the settings and rules in force; asked for each prompt
	Sessions func() (*session.Store, error)
	Plugins  iter.Seq[plugin.Plugin] // nil: there are none
}

// Input is what the layers of a session may depend on.
type Input struct {
	Head      session.Head
	Principal capability.Principal
	View      door.View
	Delivery  model.DeliveryMode // how tools are delivered
	Document  string             // AGENTS.md of the catalog
	Map       string             // the map of the catalog or, if all tools are sent, the list of everything else
	Intents   bool               // the model must name its intents
}

// Environment tells a model the day, the workspace and the mode. The text changes
// once a day, and with the mode.
func Environment(workspace, mode string) string {
	text := fmt.Sprintf("[Today is %s. The workspace is %s.", time.Now().Format("Monday, 2 January 2006"), untrusted.Line(workspace, 200))
	if mode != "" {
		text += " The mode is " + untrusted.Line(mode, 40) + "."
	}
	return text + "]"
}

// Build returns the layers of the system prompt of a session that begins, and what
// a person should know about them.
func (b *Builder) Build(ctx context.Context, in Input) ([]prompt.Layer, []event.Notice) {
	on := prompt.On{Intents: in.Intents, Delivery: string(in.Delivery), Ask: true, Finish: true, Results: true}
	on.Listed = in.Delivery == model.Whole && in.Map != ""
	now := b.Current()
	layers, wrong := layerfiles.Load(on, b.folders(in.Document)...)
	layers = prompt.WithDocument(layers, in.Document)
	var notices []event.Notice
	for _, n := range wrong {
		notices = append(notices, event.Notice{Name: "degraded", Text: n.File + ": " + n.Text})
	}
	if in.Map != "" {
		layers = append(layers, prompt.Layer{Name: prompt.Map, Text: in.Map})
	}
	if text := workText(now.Settings.Work); text != "" {
		layers = append(layers, prompt.Layer{Name: "work", Text: text})
	}
	skills, missing := b.skills(ctx, now, in.View)
	layers = append(layers, prompt.Skills(skills))
	for _, text := range missing {
		notices = append(notices, event.Notice{Name: "degraded", Text: text})
	}
	if now.Settings.Chat.Memory {
		layers = append(layers, b.previous(ctx, in))
	}
	more, failed := b.pluginLayers(ctx)
	return append(layers, more...), append(notices, failed...)
}

// pluginLayers returns what plugins add. One that fails adds nothing.
func (b *Builder) pluginLayers(ctx context.Context) (layers []prompt.Layer, notices []event.Notice) {
	if b.Plugins == nil {
		return nil, nil
	}
	for p := range b.Plugins {
		l, ok := p.(plugin.Layerer)
		if !ok {
			continue
		}
		more, err := l.Layers(ctx)
		if err != nil {
			notices = append(notices, event.Notice{Name: "degraded", Text: fmt.Sprintf("the plugin %s gave no layers: %v", p.Name(), err)})
			continue
		}
		for _, layer := range more {
			layers = append(layers, prompt.Layer{Name: "plugin " + p.Name() + ": " + layer.Name, Text: layer.Text})
		}
	}
	return layers, notices
}

// folders returns the folders with the files of the prompt. The user's own AGENTS.md
// is not read again where it is the catalog's; what came with a project counts only
// as far as it may.
func (b *Builder) folders(document string) []layerfiles.Folder {
	own := layerfiles.Folder{Dir: b.Home}
	if text, err := os.ReadFile(filepath.Join(b.Home, prompt.AgentsFile)); err == nil {
		first, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		own.NoAgents = first != "" && strings.Contains(document, first)
	}
	return []layerfiles.Folder{own, {Dir: b.Workspace, Foreign: b.Foreign}}
}

const longestWork = 300 // characters of one line of it

// workText describes the work at hand. It came with the project, so each text is
// one short line.
func workText(list []orchestration.Work) string {
	var out strings.Builder
	line := func(name string, texts []string) {
		for _, text := range texts {
			fmt.Fprintf(&out, "  %s: %s\n", name, untrusted.Line(text, longestWork))
		}
	}
	for _, w := range list {
		fmt.Fprintf(&out, "- %s %s\n", untrusted.Line(w.ID, 60), untrusted.Line(w.Name, longestWork))
		line("may change", w.Scope)
		line("constraint", w.Constraints)
		line("done when", w.Acceptance)
	}
	if out.Len() == 0 {
		return ""
	}
	return "# Work at hand\n\nAs .orchestration/active_intents.yaml says; changes outside its scope are refused.\n\n" + strings.TrimSuffix(out.String(), "\n")
}

// previous shows how the conversation before ended: the last message of the
// person and the answer to it. What agents began and what people began are apart.
func (b *Builder) previous(ctx context.Context, in Input) prompt.Layer {
	sessions, err := b.Sessions()
	if err != nil {
		return prompt.Layer{}
	}
	list, err := sessions.ListOnly(ctx, in.Principal, 5, func(h session.Head) bool {
		return (h.BegunBy == "") == (in.Head.BegunBy == "")
	})
	if err != nil {
		return prompt.Layer{}
	}
	for _, head := range list {
		if head.ID == in.Head.ID || head.Folder != in.Head.Folder || head.Turns == 0 {
			continue
		}
		_, entries, err := sessions.Read(ctx, in.Principal, head.ID)
		if err != nil {
			continue
		}
		return prompt.Layer{Name: prompt.Previous, Text: previousText(head, session.Live(entries))}
	}
	return prompt.Layer{}
}

const mostPrevious = 2000 // characters of a message of the conversation before

// previousText is data: what was said may quote anybody.
func previousText(head session.Head, live []session.Entry) string {
	last := map[session.Kind]string{}
	for _, e := range live {
		var text strings.Builder
		for _, b := range e.Blocks {
			text.WriteString(b.Text)
		}
		if text.Len() > 0 && (e.Kind == session.User || e.Kind == session.Assistant) {
			last[e.Kind] = text.String()
		}
	}
	said := fmt.Sprintf("The person: %s\n\nThe answer: %s", last[session.User], last[session.Assistant])
	return "# Previous conversation\n\n" + untrusted.Block(said, untrusted.BlockConfig{Origin: "session " + head.ID, Max: 2 * mostPrevious})
}
