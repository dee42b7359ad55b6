import { RETRY_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { KubeObject } from '../../apis/meta.ts';

/** What was last written to request a retry of failed calls to the provider; empty: nothing. Only a change of it means something. */
export function retryRequestOf({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return metadata.annotations?.[RETRY_ANNOTATION] ?? '';
}
