import { APPLY_ROWS } from './apply-rows.ts';
import { BUILT_IN_ROWS } from './built-in-rows.ts';
import { CLUSTER_API_ROWS } from './cluster-api-rows.ts';
import { DELETION_ROWS } from './deletion-rows.ts';
import { IRONCORE_ROWS } from './ironcore-rows.ts';
import { LIST_ROWS } from './list-rows.ts';
import { MIRANTIS_ROWS } from './mirantis-rows.ts';
import { METADATA_ROWS } from './metadata-rows.ts';
import { NAMESPACE_ROWS } from './namespace-rows.ts';
import type { Row } from './row.ts';
import { KUBECTL_ROWS, TABLE_ROWS } from './kubectl-rows.ts';
import { SCHEMA_ROWS } from './schema-rows.ts';

/** All requests, in their order: later ones stand on what earlier ones have left. */
export const ROWS: readonly Row[] = [
  ...METADATA_ROWS,
  ...DELETION_ROWS,
  ...NAMESPACE_ROWS,
  ...SCHEMA_ROWS,
  ...BUILT_IN_ROWS,
  ...IRONCORE_ROWS,
  ...MIRANTIS_ROWS,
  ...CLUSTER_API_ROWS,
  ...APPLY_ROWS,
  ...KUBECTL_ROWS,
  ...LIST_ROWS,
  ...TABLE_ROWS,
];
