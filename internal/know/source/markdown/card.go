package markdown

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"ken/capability"
	"ken/internal/know/source/format"
	"ken/internal/know/source/safefs"
	"ken/internal/yamldoc"
)

// Capability cards: Markdown with frontmatter that says when the card is to be
// shown. The frontmatter is the place where a card is described; a registry
// (see registry.go) only fills in what it leaves out.

const (
	MaxCardTokens       = 2000
	defaultCardTokens   = 800 // the default of max_chars, 3,200, at four characters a token
	defaultCardPriority = 5
	cardMinChars        = 200
	cardMaxChars        = 800
	charsPerToken       = 4
)

// CardFormat returns the format of capability cards.
func CardFormat() format.Format {
	return format.Format{Name: "card", Claims: isCard, BelongsAt: livesAsCard, Limit: safefs.TextLimit, Read: readCard}
}

// isCard: a Markdown file whose frontmatter has triggers. README.md is the
// folder's index, never a card.
func isCard(p string, head []byte) bool {
	return isPage(p) && format.HasFrontmatterKey(head, "triggers", "capability_id", "capabilityId", "capability-id")
}

// livesAsCard: a Markdown file in a folder for cards.
func livesAsCard(place string) bool {
	return isPage(place) && (safefs.InFolder(place, "cards") || strings.HasSuffix(path.Dir("/"+place), "/docs/capabilities"))
}

func readCard(u *format.Unit) {
	data, ok := u.Text(u.Path, u.Data, false)
	if !ok {
		return
	}
	pg, err := format.SplitPage(data, yamldoc.Limits{})
	if err != nil {
		u.FaultErr("bad-frontmatter", u.Path, pg.MetaLine, err)
		return
	}
	if !pg.Found {
		u.Fault("bad-frontmatter", u.Path, 1, "the card has no frontmatter", "begin it with a line ---, then capability_id, triggers and so on, then ---")
		return
	}
	at := func(line int) (string, int) { return u.Path, pg.Line(line) }
	body := strings.TrimSpace(pg.Body)
	if c := cardOf(u, pg.Meta, body, cardName(u.Path), at); c != nil {
		lintCard(u, c, body, u.Path)
		u.BodyLine = pg.TextLine()
		u.Add(c, capability.Detail{Body: body}, u.Path, 1)
	}
}

func cardName(p string) string { return strings.TrimSuffix(path.Base(p), path.Ext(p)) }

// A placer turns a line of a card's metadata into a file and its line.
type placer func(line int) (p string, fileLine int)

// cardOf makes a card of its metadata, or records why it is none and returns nil.
func cardOf(u *format.Unit, meta *yamldoc.Map, body, fallback string, at placer) *capability.Capability {
	r := yamldoc.NewReader(meta)
	t := r.Map("triggers")
	c := cardFrom(r, t)
	if c.Name == "" {
		c.Name = fallback
		p, line := at(r.Line("name"))
		u.Warn("card-id", p, line, fmt.Sprintf("the card has no capability_id; it is called %s after its file", fallback), "add capability_id: "+fallback)
	}
	c.ID = capability.ID(c.Name)
	if c.Description == "" {
		c.Description, _ = format.SummaryOf(body)
	}
	r.Field("filePath", "file") // a registry's, of no meaning in the card itself
	keepCardRest(u, c, r, t, at)
	lost := map[int]bool{} // lines of which the worst is said
	faults := checkCard(c, r, t)
	for _, bad := range faults {
		p, line := at(bad.line)
		u.Fault(bad.code, p, line, bad.message, bad.fix)
		lost[bad.line] = true
	}
	said := map[yamldoc.Error]bool{} // a key that is asked for twice complains twice
	for _, e := range r.Issues() {
		if !said[*e] && !lost[e.Line] {
			said[*e] = true
			p, line := at(e.Line)
			e = e.Moved(line - e.Line)
			u.Warn("bad-value", p, line, e.Message, e.Fix)
		}
	}
	if len(faults) > 0 {
		return nil
	}
	return c
}

// cardFrom reads a card's metadata, in any spelling, with the defaults of the
// format.
func cardFrom(r, triggers *yamldoc.Reader) *capability.Capability {
	c := &capability.Capability{
		Kind:        capability.KindCard,
		Name:        strings.TrimSpace(r.String("capabilityId", "id")),
		Description: format.FoldSpace(r.String("description")),
		DisplayName: format.FoldSpace(r.String("name")),
		Category:    r.String("category"),
		Tags:        r.Words("tags"),
		Aliases:     r.Words("aliases"),
		Version:     r.String("version"),
		Priority:    defaultCardPriority,
		Triggers:    format.Triggers(triggers),
	}
	if n, ok := r.Int("priority"); ok {
		c.Priority = n
	}
	c.TokenBudget, _ = r.Int("tokenBudget", "estimatedTokens")
	c.MaxChars, _ = r.Int("maxChars")
	if c.MaxChars == 0 && c.TokenBudget > 0 && c.TokenBudget <= MaxCardTokens {
		c.MaxChars = charsPerToken * c.TokenBudget
	}
	if c.MaxChars == 0 {
		c.MaxChars = charsPerToken * defaultCardTokens
	}
	if c.Triggers.SessionTypes == nil {
		c.Triggers.SessionTypes = []string{"main", "isolated"}
	}
	c.Migrations = format.Migrations(r)
	return c
}

// keepCardRest keeps what a card says beyond the keys that are known.
func keepCardRest(u *format.Unit, c *capability.Capability, r, t *yamldoc.Reader, at placer) {
	keep := func(prefix string, from *yamldoc.Reader) {
		for _, f := range from.Rest() {
			format.SetMeta(c, prefix+f.Key, f.Value)
			p, line := at(f.Line)
			meant := from.Suggest(f.Key)
			if meant != "" {
				meant = prefix + meant
			}
			u.MentionKept("card", p, line, prefix+f.Key, meant)
		}
	}
	keep("", r)
	keep("triggers.", t)
}

// A cardFault is a rule that rejects a card. The messages begin with the
// seed's own words, which other programs may look for.
type cardFault struct {
	code, message, fix string
	line               int
}

// checkCard returns all that is wrong with a card, so that one look mends it.
func checkCard(c *capability.Capability, r, t *yamldoc.Reader) []cardFault {
	var out []cardFault
	bad := func(line int, code, message, fix string) { out = append(out, cardFault{code, message, fix, line}) }
	if strings.ContainsFunc(c.Name, unicode.IsControl) {
		bad(format.LineOfAny(r, "capabilityId", "id"), "bad-id", fmt.Sprintf("capability_id %q holds a control character", c.Name), "write it in one line of plain text")
	}
	budget := format.LineOfAny(r, "tokenBudget", "estimatedTokens")
	switch {
	case c.TokenBudget > MaxCardTokens:
		bad(budget, "token-budget", fmt.Sprintf("Token budget exceeds maximum: %d is more than %d", c.TokenBudget, MaxCardTokens),
			fmt.Sprintf("set token_budget to %d or less", MaxCardTokens))
	case c.MaxChars > charsPerToken*MaxCardTokens:
		bad(r.Line("maxChars"), "token-budget", fmt.Sprintf("Token budget exceeds maximum: max_chars %d is more than %d", c.MaxChars, charsPerToken*MaxCardTokens),
			fmt.Sprintf("set max_chars to %d or less", charsPerToken*MaxCardTokens))
	case c.TokenBudget < 0 || c.MaxChars < 0:
		bad(format.LineOfAny(r, "tokenBudget", "estimatedTokens", "maxChars"), "token-budget", "the token budget is negative", "set token_budget to a positive number")
	}
	if !keywordsAreList(t) {
		bad(max(format.LineOfAny(t, "keywords"), format.LineOfAny(r, "triggers")), "keywords", "Invalid triggers.keywords: want a list", "write triggers: then keywords: [first, second]")
	}
	if c.Priority < 0 || c.Priority > 100 {
		bad(r.Line("priority"), "priority", fmt.Sprintf("Priority out of range: %d is not within 0 to 100", c.Priority), "set priority between 0 and 100")
	}
	if threshold := c.Triggers.ConfidenceThreshold; threshold < 0 || threshold > 1 {
		bad(t.Line("confidenceThreshold"), "threshold", fmt.Sprintf("confidence threshold %g is not within 0 to 1", threshold), "set confidence_threshold between 0 and 1")
	}
	return out
}

func keywordsAreList(triggers *yamldoc.Reader) bool {
	f, ok := triggers.Field("keywords")
	if !ok {
		return false
	}
	_, isList := f.Value.Any.([]yamldoc.Value)
	return isList
}

// lintCard says what is unwise about a card that is taken all the same.
func lintCard(u *format.Unit, c *capability.Capability, body, p string) {
	n := len([]rune(body))
	if n > 0 && (n < cardMinChars || n > cardMaxChars) {
		do := "lengthen"
		if n > cardMaxChars {
			do = "shorten"
		}
		u.Warn("card-size", p, 0, fmt.Sprintf("the card has %d characters; cards read best with %d to %d", n, cardMinChars, cardMaxChars),
			fmt.Sprintf("%s the text below the frontmatter to %d–%d characters", do, cardMinChars, cardMaxChars))
	}
	if n == 0 {
		u.Warn("card-empty", p, 0, "the card has no text below its frontmatter", "say what the capability does and how to use it")
	}
	if n > c.MaxChars {
		u.Warn("card-over-budget", p, 0, fmt.Sprintf("the card has %d characters but declares room for %d; the rest is never shown", n, c.MaxChars), "raise token_budget or shorten the card")
	}
	if t := c.Triggers; len(t.Keywords) == 0 && len(t.RouterTags) == 0 {
		u.Warn("card-no-keywords", p, 0, "the card has neither keywords nor router tags, so no message calls for it", "add some to triggers.keywords")
	}
}
