// Package scripttest has the commands of the scripts in testdata/script, which say
// what a user sees: they start Ken, clients, models, servers and people's issuers,
// and look at what came of them. They are for unix.
package scripttest
