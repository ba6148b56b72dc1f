package metrics

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ContentType is that of [Registry.Text].
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text writes everything, sorted by name and labels.
func (r *Registry) Text() []byte {
	r.mu.Lock()
	families := slices.Clone(r.families)
	r.mu.Unlock()
	slices.SortFunc(families, func(a, b *family) int { return cmp.Compare(a.name, b.name) })
	var b bytes.Buffer
	for _, f := range families {
		f.write(&b)
	}
	return b.Bytes()
}

func (f *family) write(b *bytes.Buffer) {
	b.WriteString("# HELP " + f.name + " " + escaped(f.help, false) + "\n# TYPE " + f.name + " " + string(f.kind) + "\n")
	if f.read != nil {
		f.line(b, "", labels{}, "", f.read())
		return
	}
	series := f.series.Load().all
	all := slices.Collect(maps.Keys(series))
	slices.SortFunc(all, func(x, y labels) int { return slices.Compare(x[:], y[:]) })
	for _, l := range all {
		s := series[l]
		if f.kind != histogram {
			f.line(b, "", l, "", s.value())
			continue
		}
		// The buckets are read once, so that they and the count agree whatever
		// is counted meanwhile.
		n := uint64(0)
		for i := range s.buckets {
			n += s.buckets[i].Load()
			le := "+Inf"
			if i < len(f.bounds) {
				le = number(f.bounds[i])
			}
			f.line(b, "_bucket", l, le, float64(n))
		}
		f.line(b, "_sum", l, "", s.value())
		f.line(b, "_count", l, "", float64(n))
	}
}

func (f *family) line(b *bytes.Buffer, suffix string, values labels, le string, x float64) {
	b.WriteString(f.name)
	b.WriteString(suffix)
	mark := byte('{')
	label := func(name, value string) {
		b.WriteByte(mark)
		b.WriteString(name)
		b.WriteString(`="`)
		b.WriteString(escaped(value, true))
		b.WriteByte('"')
		mark = ','
	}
	for i, name := range f.labels {
		label(name, values[i])
	}
	if le != "" {
		label("le", le)
	}
	if mark == ',' {
		b.WriteByte('}')
	}
	b.WriteByte(' ')
	b.Write(strconv.AppendFloat(b.AvailableBuffer(), x, 'g', -1, 64))
	b.WriteByte('\n')
}

// number writes NaN, +Inf and -Inf too as the format has them.
func number(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// escaped makes a help text or, with its quotes, a label's value safe.
func escaped(s string, quotes bool) string {
	if !strings.ContainsAny(s, "\\\n\"") && utf8.ValidString(s) {
		return s
	}
	s = strings.ToValidUTF8(s, "\uFFFD")
	pairs := []string{`\`, `\\`, "\n", `\n`}
	if quotes {
		pairs = append(pairs, `"`, `\"`)
	}
	return strings.NewReplacer(pairs...).Replace(s)
}
