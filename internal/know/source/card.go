package source

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"ken/capability"
	"ken/internal/yamldoc"
)

// Capability cards: Markdown with frontmatter that says when the card is to be
// shown. The frontmatter is the only place where a card is described.

const (
	maxCardTokens        = 2000
	defaultCardTokens    = 800 // the default of max_chars, 3,200, at four characters a token
	defaultCardPriority  = 5
	defaultCardThreshold = 0.6
	cardMinChars         = 200
	cardMaxChars         = 800
)

func cardFormat() format {
	return format{name: "card", claims: isCard, limit: textLimit, read: readCard}
}

// isCard: a Markdown file in a folder for cards, or one whose frontmatter has
// triggers. README.md is the folder's index, never a card.
func isCard(p string, head []byte) bool {
	if !hasExt(p, ".md") || baseName(p) == "readme.md" {
		return false
	}
	if inFolder(p, "cards") || strings.HasSuffix(path.Dir("/"+p), "/docs/capabilities") {
		return true
	}
	if !bytes.HasPrefix(bytes.TrimPrefix(head, []byte("\ufeff")), []byte("---")) {
		return false
	}
	return bytes.Contains(head, []byte("\ntriggers:")) || bytes.Contains(head, []byte("\ncapability_id:")) ||
		bytes.Contains(head, []byte("\ncapabilityId:"))
}

func readCard(u *unit) {
	pg, err := splitPage(u.data, yamldoc.Limits{})
	if err != nil {
		u.faultErr("bad-frontmatter", u.path, pg.metaLine, err)
		return
	}
	if !pg.found {
		u.fault("bad-frontmatter", u.path, 1, "the card has no frontmatter", "begin it with a line ---, then capability_id, triggers and so on, then ---")
		return
	}
	r := yamldoc.NewReader(pg.meta)
	c := cardFrom(r, strings.TrimSuffix(path.Base(u.path), path.Ext(u.path)))
	u.keepRest(c, u.path, pg.metaLine, r, true)
	if code, line, message, fix := checkCard(c, r); code != "" {
		u.fault(code, u.path, line+pg.metaLine-1, message, fix)
		return
	}
	u.warnIssues("bad-value", u.path, pg.metaLine, r)
	body := strings.TrimSpace(pg.body)
	u.lintCard(c, body)
	u.add(c, capability.Detail{Body: body}, u.path, 1)
}

// cardFrom reads a card's metadata, in either spelling, with the defaults of
// the format.
func cardFrom(r *yamldoc.Reader, fallback string) *capability.Capability {
	c := &capability.Capability{
		Kind:        capability.KindCard,
		Name:        fallback,
		Description: r.String("description"),
		DisplayName: r.String("name"),
		Category:    r.String("category"),
		Tags:        r.Words("tags"),
		Version:     r.String("version"),
		Priority:    defaultCardPriority,
	}
	if id := r.String("capabilityId", "id"); id != "" {
		c.Name = id
	}
	c.ID = capability.ID(c.Name)
	if n, ok := r.Int("priority"); ok {
		c.Priority = n
	}
	c.TokenBudget, _ = r.Int("tokenBudget", "estimatedTokens")
	c.MaxChars, _ = r.Int("maxChars")
	if c.MaxChars == 0 {
		c.MaxChars = 4 * max(c.TokenBudget, 0)
	}
	if c.MaxChars == 0 {
		c.MaxChars = 4 * defaultCardTokens
	}
	t := r.Map("triggers")
	c.Triggers = &capability.Triggers{
		Keywords:            t.Strings("keywords"),
		SessionTypes:        t.Words("sessionTypes"),
		RouterTags:          t.Words("routerTags"),
		TimeOfDay:           t.Words("timeOfDay"),
		UserTier:            t.Words("userTier"),
		EnvironmentType:     t.Words("environmentType"),
		ConfidenceThreshold: defaultCardThreshold,
	}
	if x, ok := t.Float("confidenceThreshold"); ok {
		c.Triggers.ConfidenceThreshold = x
	}
	if c.Triggers.SessionTypes == nil {
		c.Triggers.SessionTypes = []string{"main", "isolated"}
	}
	c.Migrations = migrationsFrom(r)
	return c
}

// checkCard applies the rules that reject a card. The messages begin with the
// seed's own words, which other programs may look for.
func checkCard(c *capability.Capability, r *yamldoc.Reader) (code string, line int, message, fix string) {
	t := r.Map("triggers")
	switch {
	case c.TokenBudget > maxCardTokens:
		return "token-budget", r.Line("tokenBudget"),
			fmt.Sprintf("Token budget exceeds maximum: %d is more than %d", c.TokenBudget, maxCardTokens),
			fmt.Sprintf("set token_budget to %d or less", maxCardTokens)
	case c.TokenBudget < 0:
		return "token-budget", r.Line("tokenBudget"), fmt.Sprintf("token budget %d is negative", c.TokenBudget), "set token_budget to a positive number"
	case !keywordsAreList(t):
		return "keywords", r.Line("triggers"), "Invalid triggers.keywords: want a list", "write triggers: then keywords: [first, second]"
	case c.Priority < 0 || c.Priority > 100:
		return "priority", r.Line("priority"), fmt.Sprintf("Priority out of range: %d is not within 0 to 100", c.Priority), "set priority between 0 and 100"
	case c.Triggers.ConfidenceThreshold < 0 || c.Triggers.ConfidenceThreshold > 1:
		return "threshold", r.Line("triggers"), fmt.Sprintf("confidence threshold %g is not within 0 to 1", c.Triggers.ConfidenceThreshold), "set confidence_threshold between 0 and 1"
	}
	return "", 0, "", ""
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
func (u *unit) lintCard(c *capability.Capability, body string) {
	n := len([]rune(body))
	if n > 0 && (n < cardMinChars || n > cardMaxChars) {
		u.warn("card-size", u.path, 0, fmt.Sprintf("the card has %d characters; cards read best with %d to %d", n, cardMinChars, cardMaxChars), "")
	}
	if n == 0 {
		u.warn("card-empty", u.path, 0, "the card has no text below its frontmatter", "say what the capability does and how to use it")
	}
	if n > c.MaxChars {
		u.warn("card-over-budget", u.path, 0, fmt.Sprintf("the card has %d characters but declares room for %d; the rest is never shown", n, c.MaxChars), "raise token_budget or shorten the card")
	}
}

// migrationsFrom reads notes for users of earlier versions.
func migrationsFrom(r *yamldoc.Reader) []capability.Migration {
	var out []capability.Migration
	for _, m := range r.Items("migrations") {
		out = append(out, capability.Migration{From: m.String("from"), To: m.String("to"), Note: m.String("note")})
	}
	return out
}
