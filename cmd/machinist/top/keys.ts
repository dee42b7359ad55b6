import { SORT_KEYS, type Choice, type SortKey } from './machine-rows.ts';

/** What the user looks at, and how. */
export interface Looking extends Choice {
  readonly screen: 'list' | 'story' | 'help';
  /** The filter is being typed. */
  readonly isTyping: boolean;
  /** Key of the machine that is selected; undefined: the first. */
  readonly selected: string | undefined;
  /** The first machine that is shown, and the first line of a story. */
  readonly top: number;
  readonly storyTop: number;
}

/** A key, as it was pressed. */
export type Key =
  | { readonly name: 'up' | 'down' | 'pageup' | 'pagedown' | 'home' | 'end' | 'enter' | 'escape' | 'backspace' }
  | { readonly name: 'interrupt' }
  /** One character. */
  | { readonly name: 'text'; readonly text: string };

/** What is on the screen, as far as keys depend on it. */
export interface Shown {
  /** Keys of the machines in the list, in their order. */
  readonly keys: readonly string[];
  readonly pageSize: number;
  /** How far a story can be scrolled. */
  readonly storyEnd: number;
}

export const START: Looking = {
  screen: 'list',
  sort: 'attention',
  isReversed: false,
  filter: '',
  onlyAttention: false,
  isTyping: false,
  selected: undefined,
  top: 0,
  storyTop: 0,
};

/** What is looked at after a key was pressed; `quit`: nothing any more. */
export function press(now: Looking, key: Key, shown: Shown): Looking | 'quit' {
  if (key.name === 'interrupt') return 'quit';
  if (now.isTyping) return type(now, key);
  if (now.screen === 'help') return isQuit(key) ? 'quit' : { ...now, screen: 'list' };
  return now.screen === 'story' ? pressInStory(now, key, shown) : pressInList(now, key, shown);
}

/** The first line that is shown, so that line `index` is among them. */
export function topFor(top: number, index: number, pageSize: number, count: number): number {
  const last = Math.max(0, count - pageSize);
  const least = Math.max(0, index - pageSize + 1);
  return Math.min(Math.max(top, least), Math.max(index, 0), Math.max(last, least));
}

function type(now: Looking, key: Key): Looking {
  switch (key.name) {
    case 'enter':
      return { ...now, isTyping: false };
    case 'escape':
      return { ...now, isTyping: false, filter: '', top: 0 };
    case 'backspace':
      return { ...now, filter: Array.from(now.filter).slice(0, -1).join(''), top: 0 };
    case 'text':
      return { ...now, filter: `${now.filter}${key.text}`, top: 0 };
    default:
      return now;
  }
}

function pressInStory(now: Looking, key: Key, { pageSize, storyEnd }: Shown): Looking | 'quit' {
  if (isQuit(key)) return 'quit';
  if (isText(key, '?')) return { ...now, screen: 'help' };
  if (key.name === 'escape' || key.name === 'backspace' || isText(key, 'h')) return { ...now, screen: 'list' };
  const moved = move(now.storyTop, key, pageSize, storyEnd + 1);
  return moved === undefined ? now : { ...now, storyTop: moved };
}

function pressInList(now: Looking, key: Key, { keys, pageSize }: Shown): Looking | 'quit' {
  if (isQuit(key)) return 'quit';
  const index = Math.max(0, keys.indexOf(now.selected ?? ''));
  const moved = move(index, key, pageSize, keys.length);
  if (moved !== undefined) {
    return { ...now, selected: keys[moved], top: topFor(now.top, moved, pageSize, keys.length) };
  }
  switch (key.name) {
    case 'enter': {
      const selected = keys[index];
      return selected === undefined ? now : { ...now, selected, screen: 'story', storyTop: 0 };
    }
    case 'escape':
      return { ...now, filter: '', onlyAttention: false, top: 0 };
    case 'text':
      return command(now, key.text);
    default:
      return now;
  }
}

function command(now: Looking, text: string): Looking {
  switch (text) {
    case '/':
      return { ...now, isTyping: true };
    case 'a':
      return { ...now, onlyAttention: !now.onlyAttention, top: 0 };
    case 's':
      return { ...now, sort: following(now.sort), isReversed: false, top: 0 };
    case 'r':
      return { ...now, isReversed: !now.isReversed, top: 0 };
    case '?':
      return { ...now, screen: 'help' };
    default:
      return now;
  }
}

function following(sort: SortKey): SortKey {
  return SORT_KEYS[(SORT_KEYS.indexOf(sort) + 1) % SORT_KEYS.length] ?? sort;
}

/** Where a key moves to among `count` lines; undefined when it does not move. */
function move(from: number, key: Key, pageSize: number, count: number): number | undefined {
  const to = target(from, key, pageSize, count);
  return to === undefined ? undefined : Math.max(0, Math.min(to, count - 1));
}

function target(from: number, key: Key, pageSize: number, count: number): number | undefined {
  switch (key.name) {
    case 'up':
      return from - 1;
    case 'down':
      return from + 1;
    case 'pageup':
      return from - pageSize;
    case 'pagedown':
      return from + pageSize;
    case 'home':
      return 0;
    case 'end':
      return count - 1;
    case 'text':
      return { k: from - 1, j: from + 1, g: 0, G: count - 1, ' ': from + pageSize, b: from - pageSize }[key.text];
    default:
      return undefined;
  }
}

function isQuit(key: Key): boolean {
  return isText(key, 'q');
}

function isText(key: Key, text: string): boolean {
  return key.name === 'text' && key.text === text;
}
