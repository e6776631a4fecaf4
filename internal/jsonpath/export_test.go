package jsonpath

// ClientGo is the path as client-go reads it.
func (p *Path) ClientGo() string { return p.text }
