// Package contract lists the differences between a CLI and the contract tests: field by field within a test, and as
// one list at the end of a run of several packages.
//
//	TestContract…  --Compare--> Difference --attribute--> go test -json --Read--> Summary --Print--> the list
//
// A test reports each Difference as an attribute (see Attribute), so that Read does not have to search the test's
// output for it. Other failures are listed with the message of testify or of the test.
package contract
