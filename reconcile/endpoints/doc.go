// Package endpoints turns a Service and its EndpointSlices into servers of HAProxy.
//
//   - [Find] returns the addresses behind a port. An [Addresses] rule refuses those that lead
//     into the host of HAProxy, to the metadata service of a cloud, or back to HAProxy.
//   - [Slots] give each address a server that it keeps, so that most changes of endpoints take
//     no reload. [ReadSlots] finds them in the configuration of an earlier process.
//   - [Unusable] says why a port has no server, and where to mend that. [FindPort] does so for
//     a port that does not exist.
//   - [NewBackends] does all that for the backends of a cluster, within the limits of their
//     namespaces. A changed EndpointSlice computes one backend again.
//
// None keeps a state beyond its arguments.
package endpoints
