package layers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ken/capability"
	"ken/internal/door"
	"ken/internal/duration"
	"ken/internal/govern/policy"
	"ken/internal/govern/reload"
	"ken/internal/know/catalog"
	"ken/internal/talk/prompt"
)

// skillBlock returns what a skill that is part of the program says in the prompt.
func skillBlock(id string, rules *policy.Rules) string {
	if id == "shell" {
		return shellBlock(rules)
	}
	return filesBlock()
}

func filesBlock() string {
	return "Paths are relative to the workspace. Look before you change: list_files, search_files and read_file first. " +
		"apply_diff changes a part of a file, write_to_file writes a whole one. What is outside the workspace is refused, unless the person opened it."
}

func shellBlock(rules *policy.Rules) string {
	t := rules.Tool("shell")
	var b strings.Builder
	b.WriteString("shell runs one command in the workspace, confined, without a terminal and without input. ")
	if t.Mode == policy.AccessAllowlist {
		fmt.Fprintf(&b, "Allowed are single commands that begin with: %s; without ; & | $ ` < >. ", strings.Join(t.AllowedPrefixes, ", "))
	} else {
		b.WriteString("Pipes and redirections work. ")
	}
	fmt.Fprintf(&b, "A command is stopped after %s. A status other than 0 is a result: read what it wrote before you try again.", duration.Text(t.Timeout))
	return b.String()
}

// skills returns what skills say in the prompt of a session: the program's own
// whose tools may be called, and those of the catalog that are to be in every
// prompt. The others are found by what is asked.
func (b *Builder) skills(ctx context.Context, now *reload.Snapshot, view door.View) ([]prompt.Skill, []string) {
	var out []prompt.Skill
	var missing []string
	if rules := now.Rules; rules != nil {
		for _, m := range reload.BuiltinSkills() {
			there := slices.ContainsFunc(m.Tools, func(id string) bool { _, err := view.Lookup(id); return err == nil })
			if there {
				out = append(out, prompt.Skill{ID: m.ID, Block: skillBlock(m.ID, rules), Enabled: true, Own: true})
			}
		}
	}
	wanted := map[capability.ID]bool{}
	for _, name := range now.Settings.Skills.Always {
		e, err := lookupSkill(view, name)
		switch {
		case err == nil:
			wanted[e.ID] = true
		case !slices.ContainsFunc(reload.BuiltinSkills(), func(m reload.BuiltinSkill) bool { return m.ID == strings.TrimPrefix(name, "skill:") }):
			missing = append(missing, fmt.Sprintf("skills.always names %s, and there is none that may be used", name))
		}
	}
	for _, e := range activeSkills(view) {
		always := e.Trust >= capability.TrustUser && e.Meta["always"] == "true"
		if always || wanted[e.ID] {
			d, err := b.Door.Describe(ctx, view, string(e.ID))
			if err != nil {
				missing = append(missing, fmt.Sprintf("the text of %s cannot be read: %v", e.ID, err))
				continue
			}
			out = append(out, prompt.Skill{ID: e.Name, Block: d.Detail.Body, Enabled: true, Own: e.Trust >= capability.TrustUser})
		}
	}
	return out, missing
}

type skillsKey struct{}

// activeSkills returns the skills of a view. They are looked for once: a catalog
// may have thousands of other things.
func activeSkills(view door.View) []*door.Entry {
	return view.Keep(skillsKey{}, func() any {
		var out []*door.Entry
		for e := range view.All() {
			if e.Kind == capability.KindSkill && e.State == catalog.Active {
				out = append(out, e)
			}
		}
		return out
	}).([]*door.Entry) // nothing else is kept under the key
}

func lookupSkill(view door.View, name string) (*door.Entry, error) {
	if !strings.Contains(name, ":") {
		name = "skill:" + name
	}
	return view.Lookup(name)
}
