import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const FILE = resolve(import.meta.dirname, '../../deploy/monitoring/dashboard.json');

/** A query of the shipped dashboard, and where it is shown. */
export interface DashboardQuery {
  readonly panel: string;
  readonly expression: string;
}

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

/** Every query of the shipped dashboard, with values in place of Grafana's variables. */
export function dashboardQueries(variables: Readonly<Record<string, string>>): readonly DashboardQuery[] {
  const { panels } = JSON.parse(readFileSync(FILE, 'utf8')) as { panels: readonly Panel[] };
  const fill = (text: string): string =>
    text.replaceAll(/\$(\w+)/g, (variable, name: string) => variables[name] ?? variable);
  return panels.flatMap(({ title, targets = [] }) =>
    targets.map(({ expr }) => ({ panel: title, expression: fill(expr) })),
  );
}
