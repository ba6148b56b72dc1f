package doctor

import (
	"strings"

	"ken/internal/untrusted"
)

// A Database is one of ken.yaml, and what came of opening it.
type Database struct {
	Name   string
	Engine string
	Write  bool     // access: write
	Rights []string // what its user may do beyond reading, in sentences
	Err    error    // why it cannot be used
}

func databases(list []Database) []Check {
	var checks []Check
	for _, d := range list {
		key := "databases." + untrusted.Line(d.Name, 80)
		c := Check{Name: key, Grade: Good, Message: d.Engine + ", opened for reading"}
		switch {
		case d.Err != nil:
			c.Grade, c.Message, c.Fix = Bad, untrusted.Line(d.Err.Error(), textRunes), "until this is fixed no call can use it; see "+key+" in ken.yaml"
		case len(d.Rights) > 0 && !d.Write:
			c.Grade = Warn
			c.Message += ". " + untrusted.Line(strings.Join(d.Rights, " "), textRunes) + " Only the READ ONLY transaction keeps a query from using these rights, and a function of the database can get around it"
			c.Fix = "name a user that has only SELECT, as docs/databases.md shows"
		}
		checks = append(checks, c)
	}
	return checks
}
