package event

// A Ticket is what a person must know before they answer it.
type Ticket struct {
	Title string // what is asked, in one sentence
	Text  string
	Lines []Line
	Wide  bool // it may be granted for the session

	Offers []Offer // what may be granted, the narrowest first
}

// An Offer is one grant that a person may give. Calls, Text and Examples are
// untrusted.
type Offer struct {
	Scope    string   `json:"scope"`  // once, session, always
	Covers   string   `json:"covers"` // call, prefix, tool
	Calls    string   `json:"calls"`  // which calls it covers
	Text     string   `json:"text"`   // which calls, and for how long
	Examples []string `json:"examples,omitempty"`
}
