package browser

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
)

// An axNode is a node of the accessibility tree, as the protocol has it.
type axNode struct {
	ID       string   `json:"nodeId"`
	Ignored  bool     `json:"ignored"`
	Role     axValue  `json:"role"`
	Name     axValue  `json:"name"`
	Value    axValue  `json:"value"`
	Children []string `json:"childIds"`
	Parent   string   `json:"parentId"`
	Element  int      `json:"backendDOMNodeId"`
	States   []struct {
		Name  string  `json:"name"`
		Value axValue `json:"value"`
	} `json:"properties"`
}

type axValue struct {
	Value any `json:"value"`
}

func (v axValue) text() string {
	s, _ := v.Value.(string)
	return strings.Join(strings.Fields(s), " ")
}

const (
	mostReferences = 1000 // of one tree
	deepestTree    = 60
)

// usedRoles are those of elements that can be filled, clicked or selected.
func usedRoles() map[string]bool {
	out := map[string]bool{}
	for _, r := range strings.Fields("button link textbox searchbox combobox listbox checkbox radio switch slider spinbutton tab menuitem menuitemcheckbox menuitemradio option treeitem PopUpButton") {
		out[r] = true
	}
	return out
}

// tree reads the accessibility tree: the page as assistive programs see it.
func (i *instance) tree(ctx context.Context, element string, most int) (about, error) {
	var a about
	if err := i.eval(ctx, "about", &a); err != nil {
		return a, err
	}
	world, err := i.world(ctx)
	if err != nil {
		return a, err
	}
	var got struct {
		Nodes []axNode `json:"nodes"`
	}
	if element == "" {
		err = i.call(ctx, "Accessibility.getFullAXTree", params{}, &got)
	} else {
		var object string
		if object, err = i.object(ctx, element); err != nil {
			return a, err
		}
		err = i.call(ctx, "Accessibility.queryAXTree", params{"objectId": object}, &got)
	}
	if err != nil {
		return a, err
	}
	refs, err := i.references(ctx, world, got.Nodes)
	if err != nil {
		return a, err
	}
	t := treeText{nodes: map[string]*axNode{}, refs: refs, most: most}
	for n := range got.Nodes {
		t.nodes[got.Nodes[n].ID] = &got.Nodes[n]
	}
	for n := range got.Nodes {
		if node := &got.Nodes[n]; t.nodes[node.Parent] == nil {
			t.write(node, 0, "")
		}
	}
	a.Text, a.Cut = t.out.String(), t.cut
	return a, nil
}

// object returns the name that the protocol has for an element.
func (i *instance) object(ctx context.Context, element string) (string, error) {
	world, err := i.world(ctx)
	if err != nil {
		return "", err
	}
	raw, err := json.Marshal(element)
	if err != nil {
		return "", err
	}
	var out struct {
		Result struct {
			ID string `json:"objectId"`
		} `json:"result"`
		Exception *struct {
			Exception struct {
				Description string `json:"description"`
			} `json:"exception"`
		} `json:"exceptionDetails"`
	}
	if err := i.call(ctx, "Runtime.evaluate", params{"expression": pageScript + ".element(" + string(raw) + ")", "contextId": world}, &out); err != nil {
		return "", err
	}
	if out.Exception != nil {
		line, _, _ := strings.Cut(strings.TrimPrefix(out.Exception.Exception.Description, "Error: "), "\n")
		return "", unable("%s", line)
	}
	return out.Result.ID, nil
}

// references gives the elements that can be used their references, the same as
// the other readings do. An element of another site's frame has none.
func (i *instance) references(ctx context.Context, world int, nodes []axNode) (map[int]string, error) {
	used := usedRoles()
	var elements []int
	for k := range nodes {
		if n := &nodes[k]; !n.Ignored && used[n.Role.text()] && n.Element != 0 && len(elements) < mostReferences {
			elements = append(elements, n.Element)
		}
	}
	objects := make([]string, len(elements))
	var all sync.WaitGroup
	room := make(chan struct{}, 32)
	for k, element := range elements {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			var got struct {
				Object struct {
					ID string `json:"objectId"`
				} `json:"object"`
			}
			if i.call(ctx, "DOM.resolveNode", params{"backendNodeId": element, "executionContextId": world, "objectGroup": "ken"}, &got) == nil {
				objects[k] = got.Object.ID
			}
		})
	}
	all.Wait()
	defer i.call(ctx, "Runtime.releaseObjectGroup", params{"objectGroup": "ken"}, nil)
	out := map[int]string{}
	var known []int
	var args []params
	for k, id := range objects {
		if id != "" {
			known, args = append(known, elements[k]), append(args, params{"objectId": id})
		}
	}
	if len(known) == 0 {
		return out, nil
	}
	var refs struct {
		Result struct {
			Value []string `json:"value"`
		} `json:"result"`
	}
	err := i.call(ctx, "Runtime.callFunctionOn", params{
		"functionDeclaration": "function(...list) { return list.map((el) => ken.ref(el)) }",
		"executionContextId":  world, "arguments": args, "returnByValue": true,
	}, &refs)
	if err != nil {
		return nil, err
	}
	for k := range min(len(known), len(refs.Result.Value)) {
		out[known[k]] = refs.Result.Value[k]
	}
	return out, nil
}

type treeText struct {
	nodes map[string]*axNode
	refs  map[int]string
	out   strings.Builder
	most  int
	cut   bool
}

func (t *treeText) write(n *axNode, depth int, parentName string) {
	if t.cut || depth > deepestTree {
		return
	}
	role, name := n.Role.text(), n.Name.text()
	shown := !n.Ignored && role != "none" && role != "InlineTextBox" && role != "LineBreak" && !(role == "generic" && name == "") && !(role == "StaticText" && (name == "" || name == parentName))
	if shown {
		line := strings.Repeat("  ", depth) + "- " + role
		if name != "" {
			line += " " + quoted(name)
		}
		if v := n.Value.text(); v != "" && v != name {
			line += " = " + quoted(v)
		}
		for _, s := range n.States {
			switch on, _ := s.Value.Value.(bool); {
			case s.Name == "disabled" && on, s.Name == "expanded" && on, s.Name == "selected" && on:
				line += " (" + s.Name + ")"
			case s.Name == "checked" && s.Value.text() == "true":
				line += " (checked)"
			}
		}
		if ref := t.refs[n.Element]; ref != "" {
			line += " [" + ref + "]"
		}
		if t.out.Len()+len(line)+1 > t.most {
			t.cut = true
			return
		}
		t.out.WriteString(line + "\n")
		depth++
		parentName = name
	}
	for _, id := range n.Children {
		if child := t.nodes[id]; child != nil && child != n {
			t.write(child, depth, parentName)
		}
	}
}

func quoted(text string) string {
	if len(text) > 500 {
		text = strings.ToValidUTF8(text[:500], "") + "…"
	}
	raw, err := json.Marshal(text)
	if err != nil {
		return `""`
	}
	return string(raw)
}
