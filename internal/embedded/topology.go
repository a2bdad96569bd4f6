package embedded

import (
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
)

const (
	// clusterName is the only cluster's name. It is kept in the database: another name would be
	// another cluster.
	clusterName = "active"
	// historyShards is kept in the database and cannot change after. One SQLite connection does one
	// thing at a time, so more shards would be no quicker.
	historyShards = 1
)

// serviceNames returns the services that run. The internal frontend is the way of the others to the frontend's calls: at
// the frontend itself they would need the token.
func serviceNames() []string {
	return append([]string{internalFrontendService}, temporal.DefaultServices...)
}

// newTemporal builds a server of all services on db and ports. Nothing runs before its Start.
func newTemporal(db *database, ports *ports, o Options, logger *serverLogger) (temporal.Server, error) {
	internode, err := internodeTLS()
	if err != nil {
		return nil, err
	}
	authorizer, mapper := authorization.NewNoopAuthorizer(), authorization.NewNoopClaimMapper()
	if o.Token != "" {
		authorizer, mapper = administratorsOnly{}, claimMapper{token(o.Token)}
	}
	return temporal.NewServer(
		temporal.WithConfig(serverConfig(db, ports)),
		temporal.ForServices(serviceNames()),
		temporal.WithStaticHosts(staticHosts(ports)),
		temporal.WithDynamicConfigClient(o.tuning.client()),
		temporal.WithLogger(logger),
		temporal.WithTLSConfigFactory(internode),
		temporal.WithAuthorizer(authorizer),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper { return mapper }),
	)
}

// serverConfig is the static configuration: no metrics, no profiling, no HTTP API and no archive, so
// that a gRPC listener for each service is all that the server opens.
func serverConfig(db *database, ports *ports) *config.Config {
	return &config.Config{
		Services: rpcServices(ports),
		Persistence: config.Persistence{
			DefaultStore:     sqlite.PluginName,
			VisibilityStore:  sqlite.PluginName,
			NumHistoryShards: historyShards,
			DataStores:       map[string]config.DataStore{sqlite.PluginName: {SQL: db.sqlConfig()}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {
					Enabled:                true,
					InitialFailoverVersion: 1,
					RPCAddress:             ports.address(frontendService),
				},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: config.ArchivalDisabled},
			Visibility: config.VisibilityArchival{State: config.ArchivalDisabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{
			Archival: config.ArchivalNamespaceDefaults{
				History:    config.HistoryArchivalNamespaceDefaults{State: config.ArchivalDisabled},
				Visibility: config.VisibilityArchivalNamespaceDefaults{State: config.ArchivalDisabled},
			},
		},
	}
}

// rpcServices binds each service to its port. The address is spelt out: "local host" would be
// whatever an environment variable of the server says.
func rpcServices(ports *ports) map[string]config.Service {
	services := make(map[string]config.Service)
	for _, name := range serviceNames() {
		services[name] = config.Service{RPC: config.RPC{BindOnIP: loopback, GRPCPort: ports.number(name)}}
	}
	return services
}

// staticHosts tells each service where the others are, instead of a membership protocol that would
// open four more listeners and take its time to settle.
func staticHosts(ports *ports) map[primitives.ServiceName]static.Hosts {
	hosts := make(map[primitives.ServiceName]static.Hosts)
	for _, name := range serviceNames() {
		hosts[primitives.ServiceName(name)] = static.SingleLocalHost(ports.address(name))
	}
	return hosts
}
