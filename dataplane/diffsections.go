package dataplane

func diffConfigs(current, desired *Config) (*Plan, error) {
	if current != nil && current.Hash() == desired.Hash() {
		return &Plan{}, nil
	}
	return &Plan{Ops: []Op{{Action: Update, Kind: "configuration", Impact: ImpactReload, Reason: "the text or a file differs"}}}, nil
}
