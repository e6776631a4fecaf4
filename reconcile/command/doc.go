// Package command is what the main function of a controller needs beside the SDK:
// flags whose errors are told by name, a log whose level and format change while it
// runs, two listeners, the group of everything that runs, and one deployment for a
// preflight. A program uses what fits and leaves the rest.
package command
