package policyfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ken/internal/govern/policy"
	"ken/internal/yamldoc"
)

func readModes(r *yamldoc.Reader, name string, s *policy.Settings) {
	fields, ok := readMap(r, "modes", "write the mode's name and below it groups: [read]")
	if !ok {
		return
	}
	for _, one := range fields {
		body, isMap := one.Value.Any.(*yamldoc.Map)
		if !isMap {
			r.Issue(one.Line, fmt.Sprintf("mode %s is %s, want a map", one.Key, one.Value.Kind()), "write groups: [read]")
			continue
		}
		mr := yamldoc.NewReader(body)
		mode := policy.Mode{Where: place(name, one.Line)}
		if g, ok := mr.Field("groups"); ok {
			readGroups(mr, g, &mode)
		} else {
			mr.Issue(one.Line, "mode "+one.Key+" has no groups", "write groups: [read], or groups: [] for none")
		}
		if re, ok := mr.Field("fileRegex"); ok {
			mode.Files = readRegexp(mr, re)
		}
		mode.Globs = append(mode.Globs, readGlobs(mr, "files")...)
		if f, _ := mr.Field("files"); f.Key != "" && len(mode.Globs) == 0 {
			mr.Issue(f.Line, "files is empty", "list what the mode may change, or remove files: without it, the mode may change every file")
		}
		mr.RefuseRest()
		for _, issue := range mr.Issues() {
			r.Issue(issue.Line, "modes."+one.Key+": "+issue.Message, issue.Fix)
		}
		s.Modes[one.Key] = mode
	}
}

// readGroups reads [read, edit], and what a group has besides its name either
// as {edit: {fileRegex: …}} or as [edit, {fileRegex: …}].
func readGroups(r *yamldoc.Reader, f yamldoc.Field, mode *policy.Mode) {
	items, ok := f.Value.Any.([]yamldoc.Value)
	if !ok {
		r.Issue(f.Line, "groups is "+f.Value.Kind()+", want a list", "write groups: [read, edit]")
		return
	}
	for _, item := range items {
		name, rest, more := item, (*yamldoc.Map)(nil), false
		switch v := item.Any.(type) {
		case []yamldoc.Value:
			if len(v) == 2 {
				name, more = v[0], true
				rest, _ = v[1].Any.(*yamldoc.Map)
			}
		case *yamldoc.Map:
			if len(v.Fields) == 1 {
				name, more = yamldoc.Value{Line: v.Fields[0].Line, Any: v.Fields[0].Key}, true
				rest, _ = v.Fields[0].Value.Any.(*yamldoc.Map)
			}
		}
		word, isText := name.Any.(string)
		if !isText || !slices.Contains(policy.GroupWords(), word) || rest == nil && more {
			r.Issue(item.Line, "unknown group", "known groups: "+strings.Join(policy.GroupWords(), ", "))
			continue
		}
		mode.Groups = append(mode.Groups, policy.Group(word))
		if rest == nil {
			continue
		}
		if word != string(policy.GroupEdit) {
			r.Issue(item.Line, "only the group edit can have file patterns", "remove them from "+word)
		}
		er := yamldoc.NewReader(rest)
		if re, ok := er.Field("fileRegex"); ok {
			mode.Files = readRegexp(r, re)
		}
		er.String("description")
		er.RefuseRest()
		for _, issue := range er.Issues() {
			r.Issue(issue.Line, issue.Message, issue.Fix)
		}
	}
}

func readRegexp(r *yamldoc.Reader, f yamldoc.Field) *regexp.Regexp {
	s, _ := f.Value.Any.(string)
	re, err := regexp.Compile(s)
	if err != nil || s == "" {
		r.Issue(f.Line, fmt.Sprintf("%s is not a regular expression: %v", f.Key, err), `write one such as '\.md$'`)
		return nil
	}
	return re
}
