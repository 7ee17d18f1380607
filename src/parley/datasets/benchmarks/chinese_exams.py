"""C-Eval (Huang et al. 2023) and CMMLU (Li et al. 2023): Chinese exams, one Hub configuration per
subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from parley.datasets import Dataset
from parley.datasets.hub import load_hub_rows
from parley.rules.items.question import Question

# the Hub's Parquet copies; the datasets themselves are loading scripts
TABLES = "refs/convert/parquet"
CEVAL, CMMLU = "ceval/ceval-exam", "haonan-li/cmmlu"
CEVAL_SUBJECTS = (
    "accountant", "advanced_mathematics", "art_studies", "basic_medicine",
    "business_administration", "chinese_language_and_literature", "civil_servant",
    "clinical_medicine", "college_chemistry", "college_economics", "college_physics",
    "college_programming", "computer_architecture", "computer_network", "discrete_mathematics",
    "education_science", "electrical_engineer", "environmental_impact_assessment_engineer",
    "fire_engineer", "high_school_biology", "high_school_chemistry", "high_school_chinese",
    "high_school_geography", "high_school_history", "high_school_mathematics",
    "high_school_physics", "high_school_politics", "ideological_and_moral_cultivation", "law",
    "legal_professional", "logic", "mao_zedong_thought", "marxism", "metrology_engineer",
    "middle_school_biology", "middle_school_chemistry", "middle_school_geography",
    "middle_school_history", "middle_school_mathematics", "middle_school_physics",
    "middle_school_politics", "modern_chinese_history", "operating_system", "physician",
    "plant_protection", "probability_and_statistics", "professional_tour_guide", "sports_science",
    "tax_accountant", "teacher_qualification", "urban_and_rural_planner", "veterinary_medicine",
)  # fmt: skip
CMMLU_SUBJECTS = (
    "agronomy", "anatomy", "ancient_chinese", "arts", "astronomy", "business_ethics",
    "chinese_civil_service_exam", "chinese_driving_rule", "chinese_food_culture",
    "chinese_foreign_policy", "chinese_history", "chinese_literature",
    "chinese_teacher_qualification", "clinical_knowledge", "college_actuarial_science",
    "college_education", "college_engineering_hydrology", "college_law", "college_mathematics",
    "college_medical_statistics", "college_medicine", "computer_science", "computer_security",
    "conceptual_physics", "construction_project_management", "economics", "education",
    "electrical_engineering", "elementary_chinese", "elementary_commonsense",
    "elementary_information_and_technology", "elementary_mathematics", "ethnology", "food_science",
    "genetics", "global_facts", "high_school_biology", "high_school_chemistry",
    "high_school_geography", "high_school_mathematics", "high_school_physics",
    "high_school_politics", "human_sexuality", "international_law", "journalism", "jurisprudence",
    "legal_and_moral_basis", "logical", "machine_learning", "management", "marketing",
    "marxist_theory", "modern_chinese", "nutrition", "philosophy", "professional_accounting",
    "professional_law", "professional_medicine", "professional_psychology", "public_relations",
    "security_study", "sociology", "sports_science", "traditional_chinese_medicine", "virology",
    "world_history", "world_religions",
)  # fmt: skip


def rows_with_subject(hub: str, subjects: Sequence[str], split: str) -> Iterator[dict[str, Any]]:
    """The rows of all subjects, with the subject in each row and in its id."""
    for subject in subjects:
        for number, row in enumerate(load_hub_rows(hub, subject, split, revision=TABLES), 1):
            yield {
                **row,
                "id": f"{subject}/{row.get('id', number)}",
                "subject": subject,
                "language": "zh",
            }


def make_exam(
    name: str, hub: str, subjects: Sequence[str], split: str, count: int, licence: str
) -> Dataset:
    asked, examples = (partial(rows_with_subject, hub, subjects, each) for each in (split, "dev"))
    return Dataset(name, Question, count, f"hub {hub}, {split}", licence, asked, examples)


DATASETS = (
    make_exam("ceval", CEVAL, CEVAL_SUBJECTS, "val", 1346, "CC-BY-NC-SA-4.0"),
    make_exam("cmmlu", CMMLU, CMMLU_SUBJECTS, "test", 11582, "CC-BY-NC-SA-4.0"),
)
