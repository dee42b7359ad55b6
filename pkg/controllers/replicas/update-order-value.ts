import { UPDATE_ORDER_ANNOTATION } from '../../apis/machine/v1alpha1/labels.ts';
import type { MachineDeployment } from '../../apis/machine/v1alpha1/machine-deployment.ts';

/** When the rollouts of a MachineDeployment begin, among those of its namespace with the same group. */
export interface UpdateOrder {
  readonly group: string;
  /** Those with a smaller index go first; equal ones go together. */
  readonly index: number;
  /** It waits for the first updated Machine of each that goes first, instead of for all of them. */
  readonly waitsForFirst: boolean;
}

const FORM = /^([A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)\/(0|[1-9]\d{0,8})(\/first)?$/;

/** Whether an annotation's text has that form, or says nothing. */
export function isUpdateOrder(text: string): boolean {
  return text === '' || FORM.test(text);
}

/** What the annotation says; undefined without one, and for one that means nothing. */
export function updateOrderOf({ metadata }: Pick<MachineDeployment, 'metadata'>): UpdateOrder | undefined {
  const [, group = '', index = '', first] = FORM.exec(metadata.annotations?.[UPDATE_ORDER_ANNOTATION] ?? '') ?? [];
  return group === '' ? undefined : { group, index: Number(index), waitsForFirst: first !== undefined };
}
