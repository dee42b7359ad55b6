import { builtIn, type Kind } from '../api-server/kinds.ts';
import { AGE, NAME } from '../api-server/table/column.ts';

const COLUMNS = [NAME, AGE];

/** Kinds of an installation, of which objects are stored and nothing follows. */
export const INERT_KINDS: readonly Kind[] = [
  builtIn('v1', 'services', 'Service', { columns: COLUMNS }),
  builtIn('apps/v1', 'deployments', 'Deployment', { columns: COLUMNS }),
  builtIn('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy', { columns: COLUMNS }),
  builtIn('scheduling.k8s.io/v1', 'priorityclasses', 'PriorityClass', { columns: COLUMNS, namespaced: false }),
];
