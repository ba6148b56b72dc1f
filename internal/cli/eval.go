package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ken/capability"
	"ken/internal/app"
	"ken/internal/cli/evalreport"
	"ken/internal/cli/output"
	"ken/internal/find/checkup"
	"ken/internal/find/eval"
	"ken/internal/know/catalog"
)

// An evalCall is what ken eval was asked for.
type evalCall struct {
	corpus   []string
	queries  []string
	compare  string
	baseline bool
	misses   int
}

// evalCommand is ken eval: it measures how well capabilities are found.
type evalCommand struct{ *environment }

func newEval(env *environment) *cobra.Command {
	c := &evalCommand{env}
	var call evalCall
	cmd := &cobra.Command{
		Use:   "eval [--queries FILE] [--corpus PATH] [--compare A.yaml B.yaml]",
		Short: "Measure how well and how fast capabilities are found",
		Long: "Without --queries it examines your catalog: it asks for each capability in the words of its own\n" +
			"description, and reports which are taken for each other and which descriptions to improve.\n\n" +
			"With --queries it runs every query of a labelled set. Reports how often the right capabilities were found and how\n" +
			"high they ranked, how often nothing was shown, how accurate the scores are, and the time.\n\n" +
			`Queries are rows {"id","query","gold":["id",…]}; an empty gold list means that nothing should be` + "\n" +
			"shown. A gold id that is not in the catalog counts as not found. Scores and rates are 0–100. With\n" +
			"--compare the same queries run under two configurations; the difference has its 95% interval.",
		Example: "  ken eval\n" +
			"  ken eval --corpus tools.jsonl --queries queries.jsonl --queries out-of-scope.jsonl\n" +
			"  ken eval --corpus tools.jsonl --queries queries.jsonl --compare today.yaml tomorrow.yaml",
		Args: args(func(_ *cobra.Command, given []string) error { return call.check(c.configFile, given) }),
		RunE: func(cmd *cobra.Command, given []string) error {
			c.catalogs = append(c.catalogs, call.corpus...)
			return c.eval(cmd, call, given)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&call.corpus, "corpus", nil, "the same as --catalog: find in this `path` (repeatable)")
	flags.StringArrayVar(&call.queries, "queries", nil, "labelled queries: a .jsonl `file` or - (repeatable)")
	flags.StringVar(&call.compare, "compare", "", "compare this configuration `file` (A) with the next argument (B)")
	flags.BoolVar(&call.baseline, "baseline", false, "compare with plain BM25 over the same catalog")
	flags.IntVar(&call.misses, "misses", 0, "list the `n` worst queries; without --queries, n of each list instead of 10")
	return cmd
}

// check refuses calls that mean nothing.
func (call evalCall) check(configFile string, given []string) error {
	switch {
	case len(call.queries) == 0 && (call.compare != "" || call.baseline):
		return errors.New("--queries is missing; it names the labelled queries to compare with")
	case call.misses < 0:
		return fmt.Errorf("--misses %d is less than none", call.misses)
	case call.compare == "" && len(given) > 0:
		return fmt.Errorf("%q is not a flag; configurations are compared with --compare A.yaml B.yaml", given[0])
	case call.compare == "":
		return nil
	case len(given) != 1:
		return fmt.Errorf("--compare takes two configuration files, A.yaml B.yaml, and got %d", 1+len(given))
	case configFile != "":
		return errors.New("--config and --compare say different things; leave one out")
	case call.baseline:
		return errors.New("--baseline and --compare both compare; leave one out")
	}
	return nil
}

func (c *evalCommand) eval(cmd *cobra.Command, call evalCall, given []string) error {
	if len(call.queries) == 0 {
		return c.checkup(cmd, call)
	}
	queries, problems, err := c.readQueries(call.queries)
	if err != nil {
		return err
	}
	if call.compare != "" {
		return c.evalCompare(cmd, call, given[0], queries, problems)
	}
	m, err := c.measure(cmd, queries, call)
	if err != nil {
		return err
	}
	m.Problems = append(problems, m.Problems...)
	if c.json {
		return c.printJSON(m)
	}
	c.report().Report(m.Report)
	if m.Baseline != nil {
		c.out.Linef("\nA is plain BM25, B is Ken")
		c.report().Comparison(m.Baseline.Difference)
	}
	c.report().Misses(m.Misses)
	return nil
}

// checkup examines the catalog without labelled queries.
func (c *evalCommand) checkup(cmd *cobra.Command, call evalCall) (err error) {
	ctx := cmd.Context()
	a, err := c.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	c.mention(cmd, a)
	a.Vectors.Wait(ctx)
	corpus, _ := findable(a)
	r, err := checkup.Run(ctx, a.Ranker(), corpus, a.Door.Mistaken(time.Now().Add(-checkupSpan)))
	if err != nil {
		return err
	}
	if c.json {
		return c.printJSON(r)
	}
	c.report().Checkup(r, call.misses)
	return nil
}

// checkupSpan is how far back the outcome log is read.
const checkupSpan = 90 * 24 * time.Hour

// report returns what prints the results.
func (c *evalCommand) report() evalreport.Writer { return evalreport.Writer{Out: c.out, Err: c.err} }

// evalCompare measures two configurations one after the other.
func (c *evalCommand) evalCompare(cmd *cobra.Command, call evalCall, second string, queries []eval.Query, problems []capability.Problem) error {
	var both [2]measured
	for i, file := range []string{call.compare, second} {
		c.configFile = file
		m, err := c.measure(cmd, queries, call)
		if err != nil {
			return fmt.Errorf("measure %s: %w", file, err)
		}
		m.Config, m.Problems = file, append(problems[:len(problems):len(problems)], m.Problems...)
		both[i] = m
	}
	difference := eval.Compare(both[0].Each, both[1].Each)
	if c.json {
		return c.printJSON(map[string]any{"a": both[0], "b": both[1], "difference": difference})
	}
	for i, m := range both {
		c.out.Linef("%s", c.out.Style(output.Bold, output.Line(string(rune('A'+i))+": "+m.Config)))
		c.report().Report(m.Report)
		c.report().Misses(m.Misses)
		c.out.Linef("")
	}
	c.report().Comparison(difference)
	return nil
}

// readQueries reads every file. Rows that cannot be measured make it fail: a
// score over the rest would not be the one asked for.
func (c *evalCommand) readQueries(files []string) ([]eval.Query, []capability.Problem, error) {
	var queries []eval.Query
	problems := []capability.Problem{}
	var broken []string
	for _, file := range files {
		list, wrong, err := c.readQueryFile(file)
		if err != nil {
			return nil, nil, err
		}
		queries = append(queries, list...)
		for _, p := range wrong {
			if p.Severity == capability.Grave {
				broken = append(broken, p.String())
			} else {
				problems = append(problems, p)
			}
		}
	}
	if len(broken) > 0 {
		return nil, nil, &capability.Error{Kind: capability.Invalid, Op: "read queries", Err: brokenRows(broken)}
	}
	if len(queries) == 0 {
		return nil, nil, &capability.Error{
			Kind: capability.Invalid, Op: "read queries", Target: strings.Join(files, ", "),
			Err: errors.New("files contain no valid query"), Fix: "write one JSON object per line",
		}
	}
	return queries, problems, nil
}

func brokenRows(broken []string) error {
	shown := strings.Join(broken[:min(evalreport.MaxProblems, len(broken))], "\n")
	if more := len(broken) - evalreport.MaxProblems; more > 0 {
		shown += fmt.Sprintf("\nand %d more", more)
	}
	return fmt.Errorf("%s cannot be measured:\n%s", output.Plural(len(broken), "row"), shown)
}

func (c *evalCommand) readQueryFile(file string) ([]eval.Query, []capability.Problem, error) {
	if file == "-" {
		return eval.ReadQueries(c.in, "standard input")
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, nil, fmt.Errorf("read queries: %w; --queries names a .jsonl file", err)
	}
	defer func(f io.Closer) { _ = f.Close() }(f) // it was only read
	return eval.ReadQueries(f, file)
}

// A measured is the report of one configuration.
type measured struct {
	Config string `json:"config,omitempty"`
	eval.Report
	Capabilities int             `json:"capabilities"` // that could be found
	Misses       []eval.PerQuery `json:"misses,omitempty"`
	Baseline     *baseline       `json:"baseline,omitempty"`
}

// A baseline is plain BM25 on the same queries, and how Ken (B) differs from it
// (A).
type baseline struct {
	eval.Report
	Difference eval.Comparison `json:"difference"`
}

// measure opens Ken as configured and asks it the queries. The time to the
// first answer counts from before anything is read to after the first answer:
// configuration, catalog (from its cache where there is one), index.
func (c *evalCommand) measure(cmd *cobra.Command, queries []eval.Query, call evalCall) (m measured, err error) {
	ctx, start := cmd.Context(), time.Now()
	a, err := c.open(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	c.mention(cmd, a)
	a.Vectors.Wait(ctx)
	if _, err := a.Vectors.Check(ctx); err != nil {
		fmt.Fprintln(c.err, "ken: words alone are measured:", err)
	}
	find := a.Ranker()
	if _, err := find(ctx, queries[0]); err != nil {
		return m, err
	}
	ready := time.Since(start)
	corpus, known := findable(a)
	options := eval.Options{Known: func(id string) bool { return known[id] }}
	if m.Report, err = eval.Run(ctx, find, queries, options); err != nil {
		return m, err
	}
	m.IndexMS, m.RSSMB = eval.Mean(ready.Seconds()*1e3), eval.ResidentMB()
	m.Capabilities, m.Misses = len(known), m.Report.Misses(call.misses)
	if call.baseline {
		plain, err := eval.Run(ctx, eval.PlainBM25(corpus), queries, options)
		if err != nil {
			return m, err
		}
		m.Baseline = &baseline{plain, eval.Compare(plain.Each, m.Each)}
	}
	return m, nil
}

// findable returns what the person who runs Ken could be shown.
func findable(a *app.App) ([]*capability.Capability, map[string]bool) {
	var corpus []*capability.Capability
	known := map[string]bool{}
	for e := range a.View().All() {
		if e.State == catalog.Active {
			corpus, known[string(e.ID)] = append(corpus, e.Capability), true
		}
	}
	return corpus, known
}
