package connect

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Some clients name in a list which servers may be used. Ken joins such a list.

// listAt returns the names of a list, and whether there is one.
func listAt(doc map[string]any, at []string) ([]string, bool) {
	in, err := table(doc, at[:len(at)-1])
	list, ok := in[at[len(at)-1]].([]any)
	if err != nil || !ok {
		return nil, false
	}
	var out []string
	for _, item := range list {
		s, _ := item.(string)
		out = append(out, s)
	}
	return out, true
}

// listEdits changes a list of a document.
func listEdits(data []byte, root *node, c change) ([]edit, error) {
	n := root
	for _, name := range c.at {
		n = n.get(name)
	}
	if n == nil || n.kind != array {
		return nil, fmt.Errorf("%s is not a list", strings.Join(c.at, "."))
	}
	if c.add != "" {
		if len(n.items) == 0 {
			return []edit{{n.start + 1, n.start + 1, quote(c.add)}}, nil
		}
		first := n.items[0].start
		between := " "
		if lead := data[n.start+1 : first]; len(lead) > 0 && len(bytes.TrimSpace(lead)) == 0 {
			between = string(lead)
		}
		return []edit{{first, first, quote(c.add) + "," + between}}, nil
	}
	i := slices.IndexFunc(n.items, func(item *node) bool { return item.kind == text && item.text == c.remove })
	switch {
	case i < 0:
		return nil, nil
	case i+1 < len(n.items):
		return []edit{{n.items[i].start, n.items[i+1].start, ""}}, nil
	case i > 0:
		return []edit{{n.items[i-1].end, n.items[i].end, ""}}, nil
	}
	end := n.items[i].end
	if n.comma {
		end = n.end - 1
	}
	return []edit{{n.items[i].start, end, ""}}, nil
}

// checkList compares a list before and after, and takes it out of both.
func checkList(before, after map[string]any, c change) error {
	was, _ := listAt(before, c.at)
	is, ok := listAt(after, c.at)
	want := slices.Clone(was)
	if c.add != "" {
		want = append([]string{c.add}, want...)
	} else if i := slices.Index(want, c.remove); i >= 0 {
		want = slices.Delete(want, i, i+1)
	}
	if !ok || !slices.Equal(is, want) {
		return errors.New("the edit would change a list of servers")
	}
	for _, doc := range []map[string]any{before, after} {
		in, err := table(doc, c.at[:len(c.at)-1])
		if err != nil {
			return err
		}
		delete(in, c.at[len(c.at)-1])
	}
	return nil
}
