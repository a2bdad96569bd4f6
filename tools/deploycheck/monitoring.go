package main

import (
	"os"
	"path/filepath"
	"slices"

	"sigs.k8s.io/yaml"
)

// prometheusConfig holds the fields of a Prometheus configuration that this project uses. Prometheus's own module would
// take minutes to compile.
type prometheusConfig struct {
	Global struct {
		ScrapeInterval     string `json:"scrape_interval"`
		EvaluationInterval string `json:"evaluation_interval"`
	} `json:"global"`
	RuleFiles     []string `json:"rule_files"`
	ScrapeConfigs []struct {
		JobName      string `json:"job_name"`
		DNSSDConfigs []struct {
			Names           []string `json:"names"`
			Type            string   `json:"type"`
			Port            int      `json:"port"`
			RefreshInterval string   `json:"refresh_interval"`
		} `json:"dns_sd_configs"`
		StaticConfigs []struct {
			Targets []string          `json:"targets"`
			Labels  map[string]string `json:"labels"`
		} `json:"static_configs"`
	} `json:"scrape_configs"`
}

// grafanaDatasources is a provisioning file of Grafana with data sources.
type grafanaDatasources struct {
	APIVersion  int `json:"apiVersion"`
	Datasources []struct {
		Name      string            `json:"name"`
		UID       string            `json:"uid"`
		Type      string            `json:"type"`
		Access    string            `json:"access"`
		URL       string            `json:"url"`
		IsDefault bool              `json:"isDefault"`
		Editable  bool              `json:"editable"`
		JSONData  map[string]string `json:"jsonData"`
	} `json:"datasources"`
}

// grafanaDashboards is a provisioning file of Grafana with dashboards.
type grafanaDashboards struct {
	APIVersion int `json:"apiVersion"`
	Providers  []struct {
		Name            string            `json:"name"`
		Type            string            `json:"type"`
		DisableDeletion bool              `json:"disableDeletion"`
		AllowUIUpdates  bool              `json:"allowUiUpdates"`
		Options         map[string]string `json:"options"`
	} `json:"providers"`
}

// checkPrometheus checks a configuration of Prometheus. Unknown fields are errors. The first job must have the name
// that the alert rules use.
func checkPrometheus(path string) (found []string, err error) {
	var config prometheusConfig
	if err := decodeStrictly(path, &config); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(config.RuleFiles, func(name string) bool { return name == "rules.yaml" }) {
		found = append(found, "it does not load rules.yaml")
	}
	if len(config.ScrapeConfigs) == 0 || config.ScrapeConfigs[0].JobName != "claudeops" {
		found = append(found, "its first job is not named claudeops")
	}
	return found, nil
}

// checkGrafana checks the provisioning files of Grafana. Unknown fields are errors.
func checkGrafana(directory string) (found []string, err error) {
	var sources grafanaDatasources
	if err := decodeStrictly(filepath.Join(directory, "datasources", "prometheus.yaml"), &sources); err != nil {
		return nil, err
	}
	if len(sources.Datasources) != 1 || !sources.Datasources[0].IsDefault {
		found = append(found, "the only source of data is not the default one")
	}
	var dashboards grafanaDashboards
	if err := decodeStrictly(filepath.Join(directory, "dashboards", "claude-ops.yaml"), &dashboards); err != nil {
		return nil, err
	}
	if len(dashboards.Providers) != 1 || dashboards.Providers[0].Options["path"] == "" {
		found = append(found, "no directory of dashboards is named")
	}
	return found, nil
}

// decodeStrictly decodes a YAML file. An unknown or repeated key is an error.
func decodeStrictly(path string, into any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}
