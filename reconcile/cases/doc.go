// Package cases runs tests that stand beside templates: each has resources, and says what
// the configuration must be. [Parse] has the format. A [Runner] runs cases before settings
// take effect, or in a pipeline:
//
//	all, err := cases.Read(os.DirFS("templates/cases"))
//	if err != nil {
//		return err // cases.Errors, with files and lines
//	}
//	runner := &cases.Runner{Renderer: newRenderer, Validator: validator}
//	fmt.Print(runner.Run(ctx, all)) // runner.Check returns an error
package cases
