package card

import (
	"strings"

	"ken/internal/language"
)

// A grade says how much a word alone tells about what a message is about.
type grade uint8

const (
	telling  grade = iota // the rest
	everyday              // words of many meanings that turn up in talk about anything
	faint                 // words that are in every other message
)

// grades lists common English words by their stems.
func grades() map[string]grade {
	out := make(map[string]grade, 1024)
	for _, list := range []struct {
		words string
		grade grade
	}{{everydayWords, everyday}, {faintWords, faint}} {
		for word := range strings.FieldsSeq(list.words) {
			out[language.Stem(word, language.English)] = list.grade
		}
	}
	return out
}

const faintWords = `
a about above after again against all almost along already also always am an and another any anybody anyone anything
are around as ask at away back bad be because been before being below best better between big both but by can cannot
come could day did different do does doing done down during each either else end enough etc even ever every everybody
everyone everything far few find first for from further get getting give given go going gone good got great had happen
hard has have having he hello help her here hers hey hi high him his how however i if in instead into is it its just
keep kind know last later least less let like little long look lot low made make many may maybe me mean might mine more
most much must my need never new next no nobody none nor not nothing now of off often ok okay old on once one only onto
or other our ours out over own part people per perhaps place please possible put quite rather really right said same say
see seem several shall she should show since so some somebody someone something sometimes soon still such sure take tell
than thank thanks that the their them then there these they thing think this those though through time to today together
too toward tried try two under until up upon us use used useful using very via want was way we well went were what
whatever when where whether which while who whole whom whose why will with within without wish wonder work would wrong
yes yet you your yours
`

const everydayWords = `
access account act action activity add advice age agree air allow amount answer app apply area arm arrange arrive attack
attempt author average avoid bar base beat beautiful become begin believe benefit bill bit black block blue board body
born boss bottom box brain break bring budget build building business buy call capital card care carry case catch cause
cell center centre century certain chance change channel character charge cheap check child children choice choose city
claim class clean clear close cold collect collection color colour common community company compare complete concern
condition connect consider contact contain content context continue control cool copy core correct cost count country
couple course cover create credit current customer cut dark data date dead deal dear decide decision deep define degree
deliver describe design desk detail develop die difference direct direction discover discuss document door draw dream
drive drop dry duty early easy edge edit effect effort energy enjoy enter environment error evening event evidence exact
example exist expect expensive experience explain express extra eye face fact fail fall family famous fan fast father
fear feature feel field fight figure file fill final fine finger finish fire fit fix flat floor flow focus follow foot
force foreign forget form format forward free friend front full fun function future game general glass goal green ground
group grow growth guess guide guy half hall hand handle happy head health hear heart heat heavy history hit hold home
hope host hot hour house huge human idea identify image imagine impact important improve include increase industry info
information input inside interest internal international involve issue item job join judge key kill land language large
late laugh lay lead learn leave left leg letter level lie life lift light limit line link list listen live load local
location log lose loss love machine main major manage manager map mark market match material matter meaning measure
media meet member memory mention menu message method middle mile mind minute miss mode model modern moment money month
morning mother mouth move name nation nature near news nice night normal north note notice number object occur offer
office officer open operate operation opinion option order organize original outside own owner pack page pain pair paper
parent party pass past path pay peace perform period person phrase pick piece plan play point policy poor popular
position post power practice prefer prepare present press pretty previous price print private problem process produce
product program project promise proper protect prove provide public pull purpose push quality question quick quiet raise
range rate reach read ready real reason receive recent record red reduce region relate release remain remember remove
repeat replace report request require research respond response rest result return rich ride ring rise risk road rock
role room round rule run safe sale save scale scene score screen search season seat second section security select sell
send sense sentence separate serious serve server service session set settle setup share sheet ship shoot short shot
side sign similar simple single sit site situation size skill skin slow small smile social soft software sort sound
source south space speak special speed spend spring stage stand standard star start state station stay step stop store
story straight strange street strong structure study stuff style subject success sudden suggest support system table
talk task teach team technology term test text theory thought thread throw title tool top topic total touch track trade
train trouble true trust truth turn type understand unit update upset user usual value version view visit voice wait
wake walk wall war warm watch water wear web website week weight west white wide win wind window wonderful word world
worry worth write writer year young
`
