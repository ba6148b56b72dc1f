package graphql

import "strings"

const (
	maxLeaves = 60  // fields that are asked for where the caller names none
	maxNodes  = 100 // objects that are looked at for them
	maxLooked = 300 // fields of one object that are looked at
	maxDepth  = 4   // objects within objects; a connection has three: edges, node and its fields
	maxKinds  = 8   // of a union
)

// A node is an object in an answer, and what is asked of it.
type node struct {
	field  string // its name; "... on T" for one kind of a union
	of     *typeDef
	up     *node
	depth  int
	leaves []string
	inner  []*node
}

// selection returns what is asked for of a type where the caller names no fields,
// as in "{ id name owner { id } }", or "" for a scalar. Fields nearer to the
// answer come first. Fields that need arguments of their own are left out, and
// no type is within itself.
func (d *document) selection(typeName string) string {
	if s, ok := d.selections[typeName]; ok {
		return s
	}
	t := d.types[typeName]
	s := ""
	if t != nil && composite(t) {
		root := &node{of: t, depth: 1}
		d.grow(root)
		var b strings.Builder
		if root.prune(); len(root.leaves)+len(root.inner) == 0 {
			root.leaves = []string{"__typename"}
		}
		root.write(&b)
		s = b.String()
	}
	d.selections[typeName] = s
	return s
}

func composite(t *typeDef) bool {
	return t.Kind == "OBJECT" || t.Kind == "INTERFACE" || t.Kind == "UNION"
}

// grow asks for leaves level by level, until there are enough.
func (d *document) grow(root *node) {
	queue := []*node{root}
	leaves, nodes := 0, 1
	for len(queue) > 0 && leaves < maxLeaves {
		n := queue[0]
		queue = queue[1:]
		if n.of.Kind != "OBJECT" {
			n.leaves = append(n.leaves, "__typename")
		}
		for _, f := range n.of.Fields[:min(len(n.of.Fields), maxLooked)] {
			t := d.types[f.Type.base()]
			switch {
			case f.Deprecated || needsArguments(f):
			case t == nil || !composite(t):
				if leaves++; leaves <= maxLeaves {
					n.leaves = append(n.leaves, f.Name)
				}
			case n.depth < maxDepth && nodes < maxNodes && !n.within(t):
				nodes++
				n.inner = append(n.inner, &node{field: f.Name, of: t, up: n, depth: n.depth + 1})
			}
		}
		if n.of.Kind == "UNION" && n.depth < maxDepth {
			n.inner = d.kinds(n)
			nodes += len(n.inner)
		}
		queue = append(queue, n.inner...)
	}
}

// kinds returns a part for each type of a union. A field that two of them have
// with different types cannot be asked for in one answer, so only the first has it.
func (d *document) kinds(n *node) (out []*node) {
	seen := map[string]string{}
	for _, p := range n.of.PossibleTypes[:min(len(n.of.PossibleTypes), maxKinds)] {
		t := d.types[p.Name]
		if t == nil || t.Kind != "OBJECT" || n.within(t) {
			continue
		}
		plain := &typeDef{Kind: t.Kind, Name: t.Name}
		for _, f := range t.Fields[:min(len(t.Fields), maxLooked)] {
			inner := d.types[f.Type.base()]
			if inner != nil && composite(inner) {
				continue
			}
			if kind := f.Type.String(); seen[f.Name] == "" || seen[f.Name] == kind {
				seen[f.Name] = kind
				plain.Fields = append(plain.Fields, f)
			}
		}
		out = append(out, &node{field: "... on " + t.Name, of: plain, up: n, depth: n.depth + 1})
	}
	return out
}

func needsArguments(f *fieldDef) bool {
	for _, a := range f.Args {
		if a.required() {
			return true
		}
	}
	return false
}

// within reports whether a type is n's, or that of an object around it.
func (n *node) within(t *typeDef) bool {
	for ; n != nil; n = n.up {
		if n.of.Name == t.Name {
			return true
		}
	}
	return false
}

// prune removes objects of which nothing is asked.
func (n *node) prune() {
	keep := n.inner[:0]
	for _, in := range n.inner {
		if in.prune(); len(in.leaves)+len(in.inner) > 0 {
			keep = append(keep, in)
		}
	}
	n.inner = keep
}

func (n *node) write(b *strings.Builder) {
	b.WriteString("{")
	for _, f := range n.leaves {
		b.WriteString(" " + f)
	}
	for _, in := range n.inner {
		b.WriteString(" " + in.field + " ")
		in.write(b)
	}
	b.WriteString(" }")
}

// outline names the fields of a type that a caller can ask for, two levels deep.
func (d *document) outline(t *typeDef) string {
	const most = 80
	var b strings.Builder
	left := most
	var write func(t *typeDef, level int)
	write = func(t *typeDef, level int) {
		for i, f := range t.Fields {
			if left--; left < 0 {
				b.WriteString(" …")
				return
			}
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(f.Name)
			inner := d.types[f.Type.base()]
			switch {
			case needsArguments(f):
				b.WriteString(" (needs arguments, so it cannot be asked for)")
			case inner == nil || !composite(inner):
			case level == 2 || inner.Name == t.Name || len(inner.Fields) == 0:
				b.WriteString(" {" + inner.Name + "}")
			default:
				b.WriteString(" {")
				write(inner, level+1)
				b.WriteString("}")
			}
		}
		for i, p := range t.PossibleTypes[:min(len(t.PossibleTypes), maxKinds)] {
			if t.Kind == "UNION" && isName(p.Name) {
				if i > 0 {
					b.WriteString(", ")
				}
				b.WriteString("on " + p.Name)
			}
		}
	}
	write(t, 1)
	return b.String()
}
