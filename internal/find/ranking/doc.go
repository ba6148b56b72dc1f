// Package ranking orders capabilities by how well they fit a message.
//
// [IndexOf] returns the search index of a snapshot of the catalog (index.go), and
// [Embed] adds vectors to it (embed.go). A [View] narrows the index to what a
// viewer may see: what is hidden has no influence on what is found. A search takes
// the message apart (query.go), collects candidates by words (search.go) and by
// vectors (dense.go, meaning.go), ranks them by weighted features (rank.go,
// weights.go), and says how likely it is that anything fits (confidence.go). It
// works on slots and bits; no string of a capability is touched.
package ranking
