package haproxycfg

// sectionKind says what HAProxy accepts after the keyword of a section, and where the parser
// of the Dataplane API puts such sections.
type sectionKind struct {
	words    int  // how many words may follow; negative for any number
	nameless bool // the name may be left out
	free     bool // the name may have any characters
	from     bool // "from" and the name of a defaults section may follow
	proxy    bool // an earlier section must not move below it
	below    bool // stored below the backends
}

// sectionKinds are the sections of HAProxy 2.6 to 3.2. If a proxy has too many words after
// its name, HAProxy up to 3.0 drops it, often silently, and later versions refuse it. If no
// version objects, neither do we.
var sectionKinds = map[string]sectionKind{
	"global":      {nameless: true},
	"traces":      {nameless: true},
	"defaults":    {words: -1, nameless: true, free: true, from: true},
	"crt-store":   {words: 1, nameless: true, free: true},
	"frontend":    {words: 1, from: true, proxy: true},
	"backend":     {words: 1, from: true, proxy: true},
	"listen":      {words: 1, from: true, proxy: true, below: true},
	"program":     {words: 1, free: true, below: true},
	"cache":       {words: 1, free: true},
	"peers":       {words: 1},
	"userlist":    {words: 1},
	"log-forward": {words: 1},
	"fcgi-app":    {words: 1, below: true},
	"log-profile": {words: 1},
	"acme":        {words: -1, free: true},
	"resolvers":   {words: -1},
	"mailers":     {words: -1},
	"http-errors": {words: -1},
	"ring":        {words: -1},
}

func isSection(word string) bool {
	_, known := sectionKinds[word]
	return known
}
