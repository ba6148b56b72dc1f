"""Rules that turn what an operation says about itself into what a person might ask."""
import re

from texts import sentences, split_name

OPENINGS = ("i want to {}", "can you {}", "can you {}?", "please {}", "how do i {}?", "how do i {}", "help me {}",
            "i need to {}", "i'd like to {}", "could you {} for me", "{} for me", "{} please", "i have to {}")

# Third person to imperative for verbs whose ending is not simply "s".
IRREGULAR = {"does": "do", "has": "have", "is": "be", "goes": "go", "replies": "reply", "applies": "apply",
             "copies": "copy", "modifies": "modify", "queries": "query", "verifies": "verify", "retries": "retry",
             "specifies": "specify", "identifies": "identify", "notifies": "notify", "classifies": "classify"}
ES = ("sses", "shes", "ches", "xes", "zzes")
NOT_VERBS = {"this", "its", "as", "always", "access", "process", "us", "address", "status", "https", "dns", "aws",
             "sms", "css", "rss", "gps", "tls", "os", "ios", "news", "series", "analysis", "business", "previous"}

# Words people use for what interfaces name otherwise.  Either side of a line may stand for the other.
SYNONYMS = [line.split("|") for line in """
list|show|see all|show me all|display|what are
get|fetch|look up|find|show me|check|retrieve|pull up|give me
retrieve|get|look up|find|pull
create|add|make|set up|start|new|make a new
delete|remove|get rid of|erase|drop|cancel
remove|delete|take off|take out|get rid of
update|change|edit|modify|adjust
modify|change|edit|update|tweak
search|look for|find|hunt for|search for
send|deliver|shoot over|pass on
upload|put up|add|send up
download|save|grab|get a copy of
cancel|call off|stop|abort
schedule|plan|book|set up|arrange
book|reserve|arrange
generate|make|create|produce|come up with
calculate|work out|compute|figure out|what is
compute|calculate|work out|figure out
convert|turn|change|translate
validate|check|verify|make sure of
verify|check|confirm
enable|turn on|switch on|activate
disable|turn off|switch off|deactivate
start|launch|begin|run|kick off
stop|end|halt|shut down
restart|reboot|start again
subscribe|sign up|follow
unsubscribe|opt out|stop following
register|sign up|enrol
authenticate|log in|sign in
submit|send in|hand in|file
approve|accept|okay|sign off on
reject|decline|turn down|refuse
assign|give|hand|allocate
archive|put away|store away
restore|bring back|recover|undo
import|load|bring in
export|save out|dump|extract
merge|combine|join
compare|contrast|diff
track|follow|keep an eye on|monitor
monitor|watch|keep an eye on
analyze|examine|study|look into
recommend|suggest
predict|forecast|estimate
translate|say
summarize|sum up|give me the gist of
purchase|buy|order
pay|settle|cover
invoice|bill
customer|client|buyer
employee|worker|staff member|colleague
user|person|member|account holder
users|people|members
message|note|text
email|mail|e-mail
photo|picture|image|pic
image|picture|photo
photos|pictures|images
video|clip|movie
document|file|doc|paper
file|document
folder|directory
meeting|appointment|call
event|appointment|happening
calendar|schedule|agenda
task|to-do|job|chore
tasks|to-dos|things to do
reminder|alert|notification
notification|alert|ping
price|cost|how much
prices|costs|rates
order|purchase
shipment|package|parcel|delivery
address|location|place
location|place|whereabouts|spot
weather|forecast|temperature outside
vehicle|car
product|item|article
products|items|goods
payment|transfer|transaction
money|cash|funds
salary|pay|wages
password|login|credentials
contact|person|friend
company|business|firm|organization
information|info|details|data
details|info|information
statistics|stats|numbers|figures
report|summary|overview
comment|remark|reply
error|problem|bug|failure
issue|problem|bug|ticket
ticket|issue|case
website|site|web page
song|track|music
doctor|physician
medication|medicine|drug
flight|plane|trip
hotel|place to stay|room
restaurant|place to eat
current|latest|today's|right now
multiple|several|many
specified|given|certain|particular
existing|current|old
all|every|all of the
""".strip().splitlines()]
TABLE = {}
for row in SYNONYMS:
    TABLE[row[0]] = row[1:]

FILLER = re.compile(r"\b(the specified|the given|specified|given|one or more|a specific|an existing|your|the current|"
                    r"for the authenticated user|in the system|resource)\b ?", re.I)


def imperative(sentence):
    """`Lists the users.` -> `list the users`; other sentences lowercased at the first letter."""
    s = sentence.strip().rstrip(".!:; ")
    words = s.split()
    if not words:
        return ""
    first = words[0].lower()
    if first in ("api", "endpoint") and len(words) > 2 and words[1].lower() in ("to", "for"):
        words, first = words[2:], words[2].lower()
    if first in ("this", "the") and len(words) > 3 and words[1].lower() in ("api", "endpoint", "operation", "method", "call", "function", "resource"):
        words = words[2:]
        first = words[0].lower()
        if first in ("will", "can", "may", "allows", "lets", "enables") and len(words) > 2:
            words = words[1:]
            if words[0].lower() in ("you", "users", "clients") and len(words) > 2:
                words = words[1:]
            if words[0].lower() == "to" and len(words) > 1:
                words = words[1:]
            first = words[0].lower()
    if first in IRREGULAR:
        first = IRREGULAR[first]
    elif first.endswith(ES):
        first = first[:-2]
    elif first.endswith("s") and not first.endswith("ss") and first not in NOT_VERBS and len(first) > 3 and len(words) > 1:
        first = first[:-1]
    elif words[0].isupper() and len(words[0]) > 1:
        first = words[0]
    return " ".join([first] + words[1:])


def dress(request, rng, bare=0.3):
    if rng.random() < bare:
        return request
    return rng.choice(OPENINGS).format(request)


def first_part(summary, description):
    """(the sentence a request is made of, what remains of the description)."""
    parts = sentences(description or "")
    if summary and len(summary.split()) >= 2:
        rest = description or ""
        if parts and parts[0].rstrip(".").lower() == summary.rstrip(".").lower():
            rest = " ".join(parts[1:])
        return summary, rest
    if parts:
        return parts[0], " ".join(parts[1:])
    return "", ""


def reworded(request, rng, rate=0.6):
    """The request with everyday words for some of its words, and without interface filler."""
    out = []
    for w in FILLER.sub("", request).split():
        key = w.lower().strip(",.")
        if key in TABLE and rng.random() < rate:
            out.append(rng.choice(TABLE[key]))
        else:
            out.append(w)
    return " ".join(out)


def questions(request, rng):
    """The request as a question, a wish or a bare phrase of key words."""
    words = request.split()
    rest = " ".join(words[1:])
    verb = words[0].lower() if words else ""
    pick = rng.random()
    if not rest:
        return request
    if verb in ("list", "get", "retrieve", "show", "fetch", "return", "read", "describe", "find", "search") and pick < 0.5:
        form = rng.choice(("what are {}?", "what is {}?", "i want to see {}", "which {} do i have?", "any {}?",
                           "where can i find {}?", "{}?", "tell me about {}", "is there {}?", "let me see {}"))
        return form.format(re.sub(r"^(a|an|all|the|list of) ", "", rest) if "which" in form or "any" in form else rest)
    if pick < 0.75:
        keep = [w for w in words if w.lower() not in ("a", "an", "the", "of", "for", "to", "in", "by", "with", "and", "or", "from", "on", "all")]
        return " ".join(keep[:6])
    return request


def name_words(name, path=""):
    n = split_name(re.sub(r"^(get|post|put|delete|patch|head) /", "/", name, flags=re.I))
    return n.lower()
