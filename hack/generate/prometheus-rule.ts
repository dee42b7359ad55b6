import { readFile } from 'node:fs/promises';
import path from 'node:path';

const ROOT = path.resolve(import.meta.dirname, '../..');
const ALERTS = 'deploy/monitoring/alerts.yaml';

const HEADER = `# Generated from ${ALERTS}.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: machinist
spec:
`;

/** The alerts as an object of Prometheus' operator, for kustomize. */
export async function prometheusRule(): Promise<[file: string, text: string]> {
  const alerts = await readFile(path.join(ROOT, ALERTS), 'utf8');
  const groups = alerts.slice(alerts.indexOf('groups:'));
  return ['deploy/monitoring/prometheus-rule.yaml', HEADER + groups.replaceAll(/^(?=.)/gm, '  ')];
}
