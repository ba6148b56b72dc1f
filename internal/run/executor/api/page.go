package api

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// follow reads further pages, as many as the call asks for and the limit allows,
// and joins their lists. The next page is named by a Link header, by an address or
// a cursor in the answer, or is the next number of a parameter page.
func (x *exchange) follow(ctx context.Context, a *answer) (*answer, error) {
	if x.plan.method != http.MethodGet || a.status != http.StatusOK || a.truncated || a.broken != "" {
		return a, nil
	}
	most := min(x.plan.pages, x.limits.Pages)
	seen := map[string]bool{a.url.String(): true}
	next, counted := x.next(a, most > 1) // whether a number has a page only asking tells
	if next == nil || most < 2 {
		x.more = next != nil
		return a, nil
	}
	bodies := [][]byte{a.body}
	total := int64(len(a.body))
	last := a
	for x.pages < most && next != nil && !seen[next.String()] && total < x.limits.Bytes {
		seen[next.String()] = true
		page, err := x.fetch(ctx, next)
		if err != nil {
			return nil, err
		}
		if page.status != http.StatusOK || page.truncated || page.broken != "" || page.elsewhere != "" {
			x.more = true
			break
		}
		if empty(page.body) && len(page.header.Values("Link")) == 0 {
			next = nil
			break
		}
		total += int64(len(page.body))
		bodies, last = append(bodies, page.body), page
		x.pages++
		next, _ = x.next(last, counted)
	}
	x.more = x.more || next != nil && !seen[next.String()]
	out := *a
	out.body = joinPages(bodies)
	return &out, nil
}

// next returns the address of the page after an answer, on the same host. counted
// says that it is the next number; an API that names its next page is not counted.
func (x *exchange) next(a *answer, count bool) (u *url.URL, counted bool) {
	if text := linkNext(a.header.Values("Link")); text != "" {
		return x.within(a.url, text), false
	}
	if !mayNameNext(a.body) && !count {
		return nil, false
	}
	var top map[string]any
	dec := json.NewDecoder(bytes.NewReader(a.body))
	dec.UseNumber()
	if dec.Decode(&top) == nil {
		if text, cursor := nextIn(top); text != "" {
			if !cursor {
				return x.within(a.url, text), false
			}
			if name := x.parameter("cursor", "page_token", "pageToken", "next_token", "nextToken", "after", "continue", "marker"); name != "" {
				return with(a.url, name, text), false
			}
		}
	}
	name := x.parameter("page")
	if name == "" || !count || !listed(a.body) {
		return nil, false
	}
	n := 1
	if text := a.url.Query().Get(name); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			return nil, false
		}
	}
	return with(a.url, name, strconv.Itoa(n+1)), true
}

// mayNameNext looks for the words by which answers name their next page: to read
// a whole answer for it would cost more than the request.
func mayNameNext(body []byte) bool {
	return bytes.Contains(body, []byte(`next`)) || bytes.Contains(body, []byte(`Cursor"`)) || bytes.Contains(body, []byte(`"after"`))
}

// within reads an address, and gives nil where it is on another host.
func (x *exchange) within(from *url.URL, text string) *url.URL {
	u, err := from.Parse(text)
	if err != nil || originOf(u) != originOf(x.plan.url) || u.User != nil {
		return nil
	}
	return u
}

// parameter returns the first of some names that the operation has in its query.
func (x *exchange) parameter(names ...string) string {
	for _, name := range names {
		for _, f := range x.plan.op.fields {
			if f.in == "query" && f.wire == name {
				return name
			}
		}
	}
	return ""
}

func with(u *url.URL, name, value string) *url.URL {
	out := *u
	pairs := slices.DeleteFunc(strings.Split(u.RawQuery, "&"), func(p string) bool {
		key, _, _ := strings.Cut(p, "=")
		return key == "" || key == escape(name)
	})
	out.RawQuery = strings.Join(append(pairs, escape(name)+"="+escape(value)), "&")
	return &out
}

// linkNext returns the address with rel="next" of Link headers.
func linkNext(headers []string) string {
	for _, h := range headers {
		for {
			from := strings.IndexByte(h, '<')
			to := strings.IndexByte(h, '>')
			if from < 0 || to < from {
				break
			}
			address := h[from+1 : to]
			about, rest, _ := strings.Cut(h[to+1:], "<")
			for one := range strings.SplitSeq(strings.TrimRight(about, ", "), ";") {
				key, value, _ := strings.Cut(strings.TrimSpace(one), "=")
				if strings.EqualFold(key, "rel") && slices.Contains(strings.Fields(strings.ToLower(strings.Trim(value, `"`))), "next") {
					return address
				}
			}
			if h = ""; rest != "" {
				h = "<" + rest
			}
		}
	}
	return ""
}

// nextIn finds the next page in an answer: its address, or a cursor.
func nextIn(top map[string]any) (text string, cursor bool) {
	places := []map[string]any{top}
	for _, name := range []string{"meta", "pagination", "paging", "page_info", "pageInfo", "response_metadata", "links", "_links", "cursors"} {
		if m, ok := top[name].(map[string]any); ok {
			places = append(places, m)
			if inner, ok := m["cursors"].(map[string]any); ok {
				places = append(places, inner)
			}
		}
	}
	for _, m := range places {
		if m["has_more"] == false || m["hasMore"] == false || m["hasNextPage"] == false {
			return "", false
		}
		for _, name := range []string{"next_cursor", "nextCursor", "next_page_token", "nextPageToken", "next_token", "nextToken", "endCursor", "after"} {
			if s, ok := m[name].(string); ok && s != "" {
				return s, true
			}
		}
		for _, name := range []string{"next", "next_url", "nextUrl", "nextLink", "@odata.nextLink", "next_page_url"} {
			switch v := m[name].(type) {
			case string:
				if v == "" {
					continue
				}
				return v, !strings.Contains(v, "/") && !strings.HasPrefix(v, "?")
			case map[string]any:
				if s, ok := v["href"].(string); ok && s != "" {
					return s, false
				}
			}
		}
	}
	return "", false
}

// listOf returns the one list of a page: the page itself, or its only member that is
// one. name is "" for the page itself.
func listOf(body []byte) (items []json.RawMessage, name string, rest map[string]json.RawMessage, ok bool) {
	if json.Unmarshal(body, &items) == nil && items != nil {
		return items, "", nil, true
	}
	if json.Unmarshal(body, &rest) != nil {
		return nil, "", nil, false
	}
	for key, raw := range rest {
		var one []json.RawMessage
		if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &one) != nil {
			continue
		}
		if ok {
			return nil, "", nil, false // which of them is meant is unknown
		}
		items, name, ok = one, key, true
	}
	return items, name, rest, ok
}

func listed(body []byte) bool {
	items, _, _, ok := listOf(body)
	return ok && len(items) > 0
}

func empty(body []byte) bool {
	items, _, _, ok := listOf(body)
	return ok && len(items) == 0
}

// joinPages makes one value of several: their lists joined, with what the last
// page says besides, or a list of the pages where that cannot be.
func joinPages(bodies [][]byte) []byte {
	if len(bodies) == 1 {
		return bodies[0]
	}
	var all []json.RawMessage
	var about map[string]json.RawMessage
	list := ""
	for i, body := range bodies {
		items, name, rest, ok := listOf(body)
		if !ok || i > 0 && name != list {
			return pagesApart(bodies)
		}
		all, list, about = append(all, items...), name, rest
	}
	out, err := json.Marshal(all)
	if err != nil {
		return pagesApart(bodies)
	}
	if list == "" {
		return out
	}
	about[list] = out
	if out, err = json.Marshal(about); err != nil {
		return pagesApart(bodies)
	}
	return out
}

func pagesApart(bodies [][]byte) []byte {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, body := range bodies {
		if i > 0 {
			b.WriteByte(',')
		}
		if json.Valid(body) {
			b.Write(body)
		} else {
			raw, _ := json.Marshal(string(body)) // a text cannot fail
			b.Write(raw)
		}
	}
	b.WriteByte(']')
	return b.Bytes()
}
