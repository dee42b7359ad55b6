/** `Error`, of which V8 asks whether another formats its stacks. */
export interface Stacks {
  prepareStackTrace?: (error: Error, frames: NodeJS.CallSite[]) => unknown;
}

/** Of jest's class SourceMapSupport. */
const OF_JEST = 'bound formatStackTrace';

/**
 * Lets V8 format stacks, and jest not: jest would look for each frame's place in a source map, of which there are none, since a stripped type
 * leaves blanks of its length. Node has the stack of each error formatted that ends a stream, as each watch that a test stops. Other formatters
 * are let in: packages set one for a moment to read the stack themselves.
 */
export function formatNatively(errors: Stacks): void {
  let formatter = errors.prepareStackTrace;
  Object.defineProperty(errors, 'prepareStackTrace', {
    configurable: true,
    get: () => formatter,
    set: (wanted: Stacks['prepareStackTrace']) => {
      if (wanted?.name !== OF_JEST) formatter = wanted;
    },
  });
}
