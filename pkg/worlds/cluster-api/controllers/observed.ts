import type { BootstrapReport } from '../api/bootstrap.ts';
import type { InfrastructureReport } from '../api/infrastructure.ts';
import type { Node } from '../../../apis/wire.ts';
import type { External } from './externals.ts';

/**
 * An object of a provider, as a pass has found it. none: the Machine names none. unknown: whether there is one cannot be told. foreign: it
 * belongs to somebody else, and is let alone. `problem` says why, and what would help.
 */
export type ObservedObject<Report> =
  | { readonly kind: 'found'; readonly external: External; readonly report: Report }
  | { readonly kind: 'absent' | 'reading' | 'none' }
  | { readonly kind: 'unknown' | 'foreign'; readonly problem: string };

export type ObservedInfrastructure = ObservedObject<InfrastructureReport>;
export type ObservedBootstrap = ObservedObject<BootstrapReport>;

/**
 * The Node of a Machine, as a pass has found it. gone: there was one. unknown: none is its own as far as can be told. undecided: there is one, and
 * that it is its own cannot be told yet: nothing is destroyed. unreachable: nothing is known of the
 * cluster that it is in; for so long (isOver) that what was known is not to be told any more. isLost: for so long nothing has led to that cluster,
 * whereas one that is out of reach for another reason, or for a reason of ours, may be well.
 */
export type ObservedNode =
  | { readonly kind: 'found'; readonly node: Node }
  | { readonly kind: 'absent' | 'gone' | 'none' }
  | { readonly kind: 'unknown' | 'undecided'; readonly problem: string }
  | { readonly kind: 'unreachable'; readonly why: string; readonly isOver: boolean; readonly isLost: boolean };
