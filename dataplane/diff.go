package dataplane

// Diff compares two configurations.
func Diff(current, desired *Config) (*Plan, error) {
	return diffConfigs(current, desired)
}
