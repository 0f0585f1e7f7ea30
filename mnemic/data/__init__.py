"""Data sources: loaders and generators of training data, and the table of their kinds."""

from typing import Any

from mnemic.data.babi.dataset import GeneratedStories, StoryFolder
from mnemic.data.corpora.dataset import CorpusFiles
from mnemic.data.documents.dataset import GeneratedDocuments
from mnemic.data.knowledge.dataset import GeneratedKnowledge, KnowledgeFolder
from mnemic.data.language_modeling.copies import GeneratedCopies
from mnemic.data.language_modeling.dataset import LanguageModelFiles
from mnemic.data.long_context.articles import LongArticles
from mnemic.data.long_context.dataset import LongDocuments, LongRecall, LongStories
from mnemic.data.multi_task.dataset import MultiTaskFiles
from mnemic.data.pictures.alignment import AlignedScenes
from mnemic.data.pictures.dataset import GeneratedScenes
from mnemic.data.pictures.digits import DigitPictures
from mnemic.data.pictures.tasks import SceneTasks
from mnemic.data.seq2seq.classes_as_text import ClassesAsText
from mnemic.data.seq2seq.dataset import GeneratedDates, Seq2SeqFiles
from mnemic.data.seq2seq.parallel import ParallelFiles
from mnemic.data.seq2seq.question_generation import QuestionGenerationFiles
from mnemic.data.text_tasks.dataset import ClassFiles, PairFiles, SpanFiles, TagFiles
from mnemic.data.text_tasks.questions import QuestionArticles, QuestionFiles
from mnemic.data.text_tasks.retrieval import ArticleFiles
from mnemic.data.views.dataset import MatchFiles, ViewFiles

DATASETS: dict[str, type[Any]] = {
    "babi": StoryFolder,
    "generated-babi": GeneratedStories,
    "knowledge": KnowledgeFolder,
    "generated-knowledge": GeneratedKnowledge,
    "classes": ClassFiles,
    "pairs": PairFiles,
    "multi-task": MultiTaskFiles,
    "spans": SpanFiles,
    "tags": TagFiles,
    "questions": QuestionFiles,
    "generated-documents": GeneratedDocuments,
    "retrieval": ArticleFiles,
    "question-articles": QuestionArticles,
    "corpus": CorpusFiles,
    "views": ViewFiles,
    "matches": MatchFiles,
    "language-modeling": LanguageModelFiles,
    "copies": GeneratedCopies,
    "digits": DigitPictures,
    "scenes": GeneratedScenes,
    "aligned-scenes": AlignedScenes,
    "scene-tasks": SceneTasks,
    "seq2seq": Seq2SeqFiles,
    "dates": GeneratedDates,
    "classes-as-text": ClassesAsText,
    "parallel": ParallelFiles,
    "question-generation": QuestionGenerationFiles,
    "long-stories": LongStories,
    "long-recall": LongRecall,
    "long-articles": LongArticles,
    "long-documents": LongDocuments,
}
